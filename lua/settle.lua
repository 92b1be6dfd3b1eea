-- Finish an attempt: the rows "settle" of step.
--
-- ARGV[1]  outcome 1 (1 success with a result, 2 success, 3 success and forget, 4 failed,
--          5 failed with an error, 6 release, 7 abandon, 8 give up),
--          owner 16, not after 7, expire 5, mark 5, doubt 5 (ms)
-- ARGV[2]  the payload of outcomes 1 and 5, otherwise empty
-- ARGV[3]  only when nothing was found without it, what the owner knows of its record:
--          answered 7, head 1 (16 fingerprint, 32 token), attempt 4, fence 7,
--          [fingerprint 16], [subject 16, until 7]
-- reply    K settled · A adopted · N nothing here · L late · D damaged
--          V superseded: by 1 (0 nothing, 1 processing, 2 success with a result, 3 success,
--          4 failed, 5 issued, 6 refused), [the result]

local outcome, me, not_after, keep, mark, doubt = struct.unpack('>Bc16I7I5I5I5', ARGV[1])
local has_payload = outcome == 1 or outcome == 5
local payload = has_payload and ARGV[2] or ''

if now > not_after then
  return 'L' .. stamp
end
if damaged then
  return 'D' .. stamp
end

if not raw then
  local echo = ARGV[3]
  if not echo then
    return 'N' .. stamp
  end
  local age = math.max(now - struct.unpack('>I7', echo), 0)
  if outcome > 2 or age >= keep * 1000 then
    return 'V' .. stamp .. '\0'
  end
  local my_head = string.byte(echo, 8) + 1 + (has_payload and 128 or 0)
  local front = '\1' .. string.char(my_head) .. string.sub(echo, 9, 19) .. me .. string.sub(echo, 20)
  redis.call('SET', key, front .. stamp .. payload, 'PXAT', last_ms + keep)
  return 'A' .. stamp
end

local is_given_up = marks % 16 > 7
if owner ~= me or status ~= 0 or is_given_up and outcome > 3 then
  local is_settled_so = status == 8
  if status == 0 then
    is_settled_so = outcome > 6
  elseif status == 1 or status == 2 then
    local same = status == 1 and (has_payload and 1 or 2) or (has_payload and 5 or 4)
    local is_same_kind = outcome == same and has_payload == (head > 127)
    is_settled_so = is_same_kind and string.sub(raw, state_at + 7) == payload
  elseif status == 9 then
    is_settled_so = outcome == 4 or outcome == 6 or outcome == 8
  end
  if is_settled_so and owner == me then
    return 'K' .. stamp
  elseif status == 1 and head > 127 then
    return 'V' .. stamp .. '\2' .. string.sub(raw, state_at + 7)
  end
  local by = { [0] = '\1', '\3', '\4', '\6', [9] = '\5' }
  return 'V' .. stamp .. (by[status] or '\0')
end

-- A token that the body did not use is handed back, and takes a corrected form.
local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 < 4
local hands_back = token and is_unused and struct.unpack('>I7', token, 17) > now

if hands_back then
  local front = '\1' .. string.char(kept and 105 or 41) .. string.sub(raw, 3, 29)
  local until_ms = struct.unpack('>I7', token, 17) / 1000
  redis.call('SET', key, front .. token .. (kept or ''), 'PXAT', until_ms - 1)
elseif outcome < 3 or outcome == 5 or outcome == 4 and not token then
  local my_head = head % 64 + (outcome < 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)
  local front = '\1' .. string.char(my_head) .. string.sub(raw, 3, bound_end)
  redis.call('SET', key, front .. (kept or '') .. stamp .. payload, 'PXAT', last_ms + keep)
elseif outcome == 3 or is_unused then
  local ends = math.max(last_ms + mark, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)
  local front = '\1\72\0\0\0\0' .. string.sub(raw, 7, 29)
  redis.call('SET', key, front .. struct.pack('>I7', (ends + 1) * 1000), 'PXAT', ends)
else
  -- Of a takeover in doubt that never began, the doubt stays.
  marks = marks + 8
  if outcome == 8 and marks % 2 == 0 then
    marks = marks + 1
  end
  if marks % 2 == 1 and marks < 32 and doubt > keep then
    keep = doubt
  end
  local state = string.char(marks) .. string.sub(raw, state_at + 1, state_at + 7) .. stamp .. string.sub(raw, -6)
  redis.call('SET', key, string.sub(raw, 1, state_at - 1) .. state, 'PXAT', last_ms + keep)
end

if marks % 32 > 15 then
  redis.pcall('PUBLISH', 'idem:wake:' .. key, '')
end
return 'K' .. stamp
