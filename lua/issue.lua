-- Issue a one-time token: the rows "issue" of step.
--
-- ARGV[1]  subject 16, not after 7, ttl 5 (ms)
-- reply    I issued · O taken · L late · D damaged

local my_subject, not_after, ttl = struct.unpack('>c16I7I5', ARGV[1])

if now > not_after then
  return 'L' .. stamp
end
if damaged then
  return 'D' .. stamp
end
if raw then
  local is_the_same = status == 9 and string.sub(token, 1, 16) == my_subject
  return (is_the_same and 'I' or 'O') .. stamp
end

local ends = last_ms + ttl
local nobody = string.rep('\0', 16)
local value = struct.pack('>BBI4I7c16c16I7', 1, 41, 0, now, nobody, my_subject, (ends + 1) * 1000)
redis.call('SET', key, value, 'PXAT', ends)
return 'I' .. stamp
