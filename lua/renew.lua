-- Prolong the lease, or mark the checkpoint: the rows "renew" of step.
--
-- ARGV[1]  flags 1 (1 mark the checkpoint), owner 16, not after 7, lease 5, expire 5, doubt 5 (ms)
-- ARGV[3]  only when nothing was found without it, what the owner knows of its record:
--          answered 7, head 1 (16 fingerprint, 32 token), attempt 4, fence 7, since 7, marks 1,
--          [fingerprint 16], [subject 16, until 7]
-- reply    R renewed · B built again · N nothing here · G lost · L late · D damaged

local flags, me, not_after, lease, keep, doubt = struct.unpack('>Bc16I7I5I5I5', ARGV[1])

if now > not_after then
  return 'L' .. stamp
end
if damaged then
  return 'D' .. stamp
end

local front, state
local ends = struct.pack('>I7', now + lease * 1000)
if raw then
  if status ~= 0 or owner ~= me or marks % 16 > 7 then
    return 'G' .. stamp
  end
  if flags % 2 > marks % 2 then
    marks = marks + 1
  end
  front = string.sub(raw, 1, state_at - 1)
  state = string.char(marks) .. string.sub(raw, state_at + 1, state_at + 7) .. ends .. string.sub(raw, -6)
else
  local echo = ARGV[3]
  if not echo then
    return 'N' .. stamp
  end
  marks = string.byte(echo, 27)
  local age = math.max(now - struct.unpack('>I7', echo), 0)
  if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then
    return 'G' .. stamp
  end
  front = '\1' .. string.sub(echo, 8, 19) .. me .. string.sub(echo, 28)
  state = string.char(marks) .. string.sub(echo, 20, 26) .. ends .. struct.pack('>I6', keep)
end

if marks % 2 == 1 and marks < 32 and doubt > keep then
  keep = doubt
end
redis.call('SET', key, front .. state, 'PXAT', last_ms + keep)
return (raw and 'R' or 'B') .. stamp
