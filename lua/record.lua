-- What every step begins with: read the clock and the record. Each step file is appended to this
-- one before it is loaded. A step is atomic, but Lua does not roll back: it writes once, and only
-- after it has decided.
--
-- KEYS[1]  the record's key, the only one that is touched
--
-- The record is one packed string (idem-core/src/record/format.rs has the same table):
--   version 1, head 1 (status + flags), attempt 4, fence 7, owner 16,
--   flag 16: fingerprint 16 · flag 32: subject 16, usable until 7 · flag 64: closed until 7,
--   processing (0):          marks 1, since 7, lease until 7, expire in ms 6
--   success (1), failed (2): ended at 7, and the payload if flag 128
--   refused (3), closed by an operator (7), closed (8; flag 64 holds its end), issued (9): no more
--   marks: 1 checkpoint, 2 takeover, 4 doubt, 8 given up, 16 waiters, 32 rerun
-- Numbers are big-endian; times are µs, exact in a double up to 2^53. They leave Lua only through
-- struct.pack and string.format('%.0f'): tostring and .. would print 1.79e+15.
--
-- A reply is one packed string: kind 1, store time 7, and what belongs to the kind
-- (idem-core/src/store/redis/reply.rs lists the kinds).

local key = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function reply(kind)
  return struct.pack('>c1I7', kind, now)
end

local function ceil_ms(time)
  return math.ceil(time / 1000) * 1000
end

-- A key with PXAT t is still there at t ms, a record is gone when its last millisecond begins.
local function write(value, expires)
  redis.call('SET', key, value, 'PXAT', string.format('%.0f', expires / 1000 - 1))
end

local raw = redis.pcall('GET', key)
local damaged = type(raw) == 'table'
if damaged and not string.find(raw.err, 'WRONGTYPE', 1, true) then
  return raw
end

-- bound_end is the last byte of fingerprint and token, state_at the first of the state.
local head, status, attempt, fence, owner, bound_end, state_at
local fingerprint, subject, token_until, closed_until
local marks, since, lease_until, expire = 0

if raw and not damaged then
  damaged = #raw < 29 or string.byte(raw) ~= 1
end
if raw and not damaged then
  head, attempt, fence, owner, state_at = struct.unpack('>BI4I7c16', raw, 2)
  status = head % 16
  bound_end = 29
  if head > 15 then
    -- Padded, so that flags which promise more than there is make `rest` negative.
    local padded = #raw < 75 and raw .. string.rep('\0', 46) or raw
    if head % 32 > 15 then
      fingerprint, state_at = struct.unpack('c16', padded, state_at)
    end
    if head % 64 > 31 then
      subject, token_until, state_at = struct.unpack('>c16I7', padded, state_at)
    end
    bound_end = state_at - 1
    if head % 128 > 63 then
      closed_until, state_at = struct.unpack('>I7', padded, state_at)
    end
  end
  local rest = #raw + 1 - state_at
  if status == 0 then
    damaged = rest ~= 21 or head > 127
    if not damaged then
      marks, since, lease_until, expire = struct.unpack('>BI7I7I6', raw, state_at)
      damaged = marks > 63
    end
  elseif status == 1 or status == 2 then
    damaged = rest < 7 or rest > 7 and head < 128
  elseif status == 3 then
    damaged = rest ~= 0 or head ~= 3 and head ~= 67
  elseif status == 7 or status == 8 then
    damaged = rest ~= 0 or head - status ~= 64
  elseif status == 9 then
    damaged = rest ~= 0 or head ~= 41 and head ~= 105
  else
    damaged = true
  end
end

local function marked(bit)
  return marks % (bit + bit) >= bit
end

-- Until when a closed mark on this key has to stay, whoever claims it in between.
local function mark_to_keep()
  if closed_until and (closed_until > now or status > 6 and status < 9) then
    return closed_until
  end
end

-- Everything before the state, under another head: flag 64 follows from the mark to keep.
local function front(new_head, new_bound)
  local ends = mark_to_keep()
  return struct.pack('>BBI4I7c16c0', 1, new_head + (ends and 64 or 0), attempt, fence, owner, new_bound)
    .. (ends and struct.pack('>I7', ends) or '')
end

-- Past its checkpoint at hold, what became of an attempt is not to be forgotten before `doubt`.
local function write_processing(before, lease_ends, keep, doubt)
  local held = marked(1) and not marked(32)
  local ttl = held and doubt > keep and doubt or keep
  local state = struct.pack('>BI7I7I6', marks, since, lease_ends, expire)
  write(before .. state, ceil_ms(now + ttl * 1000))
end

local function write_finished(new_status, new_bound, payload, keep)
  local new_head = head % 64 - head % 16 + new_status + (payload and 128 or 0)
  local before = front(new_head, new_bound)
  write(before .. struct.pack('>I7', now) .. (payload or ''), ceil_ms(now + keep * 1000))
end

local function expires_at()
  local last_ms = redis.pcall('PEXPIRETIME', key)
  if type(last_ms) == 'table' then
    -- Redis 6.2 does not know it.
    local left = redis.call('PTTL', key)
    last_ms = left < 0 and left or math.floor(now / 1000) + left
  end
  return last_ms >= 0 and (last_ms + 1) * 1000 or nil
end

-- Denied to a user without the channel's right, which costs a waiter its push, not the write.
local function wake()
  if marked(16) then
    redis.pcall('PUBLISH', 'idem:wake:' .. key, '')
  end
end
