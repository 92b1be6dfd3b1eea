//! When a record ends, on a server that only tells what is left of it, wherever its clock ticks.

use std::net::SocketAddr;

use idem_tests::resp::{self, Reply};

/// Stands where a Redis 6.2 would: a clock that shows later at each call, and jumps over the rest
/// of a millisecond before one of them; a success that is there as long as the script runs.
const REDIS_6_2: &str = r"
local key_ends, jump_at, time, calls, written
local raw = struct.pack('>BBI4I7c16I7', 1, 1, 1, 5, '0123456789abcdef', 5)
local KEYS, ARGV = { 'key' }, { struct.pack('>BI7BB', 1, 5, 0, 0) }

local redis = {}
function redis.call(command, _, _, _, ends)
  calls = calls + 1
  time = calls == jump_at and math.floor(time / 1000 + 1) * 1000 or time + 10
  if command == 'TIME' then
    return { tostring(math.floor(time / 1000000)), tostring(time % 1000000) }
  elseif command == 'PTTL' then
    return key_ends < 0 and key_ends or math.max(key_ends - math.floor(time / 1000), 0)
  elseif command == 'GET' then
    return raw
  elseif command == 'SET' then
    written = ends
    return
  end
  return { err = 'ERR unknown command' }
end
redis.pcall = redis.call
";

/// Each end of a record, each moment at which a script begins, and each place of the jump.
const ALL_OF_THEM: &str = r"
local function begin(began, at, jump)
  key_ends, jump_at, time, calls, written = at, jump, began, 0, nil
end

local function is_right(reply, step, began, at)
  local said, now = struct.unpack('>c1I7', reply)
  local is_over = (said == 'N' or said == 'Z') and not written
  if is_over then
    return at >= 0 and now > began and now <= time and now >= (at + 1) * 1000 and now < began + 2100
  elseif step == 'peek' then
    local expires = struct.unpack('>I7', reply, 9)
    return said == 'Q' and expires == (at < 0 and 2 ^ 53 - 1 or (at + 1) * 1000)
  end
  return said == 'Y' and written == (at < 0 and math.ceil(now / 1000) - 1 + 60000 or at)
end

local steps, tried = { peek = peek, forget = forget }, 0
for name, step in pairs(steps) do
  for began = 7999000, 7999990, 45 do
    for _, at in ipairs({ -1, 7999, 8000, 8001, 8002, 8050 }) do
      for jump = 0, 9 do
        begin(began, at, jump)
        local reply = step()
        if not is_right(reply, name, began, at) then
          local case = string.format('%s, began %d, jump %d, end %d', name, began, jump, at)
          return { err = 'ERR wrong: ' .. case .. ': ' .. string.format('%q', reply) }
        end
        tried = tried + 1
      end
    end
  end
end
return tried
";

/// Runs the scripts' own text at `server`, whose version is all the same.
pub(crate) fn is_told_exactly(server: SocketAddr) {
    let script = [
        REDIS_6_2,
        "local function peek()\n",
        include_str!("../../lua/record.lua"),
        include_str!("../../lua/expiry.lua"),
        include_str!("../../lua/peek.lua"),
        "end\nlocal function forget()\n",
        include_str!("../../lua/record.lua"),
        include_str!("../../lua/expiry.lua"),
        include_str!("../../lua/forget.lua"),
        "end\n",
        ALL_OF_THEM,
    ];
    let tried = resp::ask(server, None, &["EVAL", &script.concat(), "0"]).unwrap();
    assert_eq!(tried, Reply::Int(2 * 23 * 6 * 10));
}
