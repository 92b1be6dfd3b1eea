-- What every step begins with: read the clock and the record. Each step file is appended to this
-- one before it is loaded. A step is atomic, but Lua does not roll back: it writes once, and only
-- after it has decided.
--
-- KEYS[1]  the record's key, the only one that is touched
--
-- The record is one packed string (idem-core/src/record/format.rs has the same table):
--   1 version (1) · 2 head (status + flags) · 3 attempt 4 · 7 fence 7 · 14 owner 16 · then from 30
--   flag 16: fingerprint 16 · flag 32: subject 16, usable until 7 · flag 64: closed until 7
--   processing (0):          marks 1, since 7, lease until 7, expire in ms 6
--   success (1), failed (2): ended at 7, and the payload if flag 128
--   refused (3), closed by an operator (7), closed (8; flag 64 is its own end), issued (9): no more
--   marks: 1 checkpoint, 2 takeover, 4 doubt, 8 given up, 16 waiters, 32 rerun
-- Numbers are big-endian; times are µs, exact in a double up to 2^53. They leave Lua through
-- struct.pack or as arguments of redis.call, which prints 17 digits; tostring, .. and cjson would
-- print 1.79e+15.
--
-- A reply is one packed string: kind 1, store time 7, and what belongs to the kind
-- (idem-core/src/store/redis/reply.rs lists the kinds).
--
-- No function is defined before a step has taken its usual way: making one costs as much as the
-- arithmetic in it.

local key = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local stamp = struct.pack('>I7', now)
-- A key with PXAT t is there while the clock shows t ms; a record is gone when its last ms begins.
local last_ms = math.ceil(now / 1000) - 1

local raw = redis.pcall('GET', key)
local damaged = false
-- state_at is where the state begins, bound_end where fingerprint and token end, kept the bytes of
-- a mark that has to stay, whoever claims its key in between.
local head, status, owner, fingerprint, token, kept, bound_end, state_at
local marks = 0

if raw then
  local version
  if type(raw) == 'string' then
    version, head = string.byte(raw, 1, 2)
  elseif not string.find(raw.err, 'WRONGTYPE', 1, true) then
    return raw
  end
  if version ~= 1 or not head then
    damaged = true
  else
    status = head % 16
    owner = string.sub(raw, 14, 29)
    state_at = 30
    if head % 32 > 15 then
      fingerprint = string.sub(raw, 30, 45)
      state_at = 46
    end
    if head % 64 > 31 then
      token = string.sub(raw, state_at, state_at + 22)
      state_at = state_at + 23
    end
    bound_end = state_at - 1
    if head % 128 > 63 then
      kept = string.sub(raw, state_at, state_at + 6)
      state_at = state_at + 7
    end
    local is_closed = status == 7 or status == 8
    local rest = #raw + 1 - state_at
    if status == 0 then
      marks = string.byte(raw, state_at) or 64
      damaged = rest ~= 21 or head > 127 or marks > 63
    elseif status < 3 then
      damaged = rest < 7 or rest > 7 and head < 128
    elseif status == 3 then
      damaged = rest ~= 0 or head ~= 3 and head ~= 67
    elseif is_closed then
      damaged = rest ~= 0 or head - status ~= 64
    else
      damaged = rest ~= 0 or head ~= 41 and head ~= 105
    end
    if kept and not damaged and not is_closed and struct.unpack('>I7', kept) <= now then
      kept = nil
    end
  end
end
