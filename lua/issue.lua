-- Issue a one-time token: the rows "issue" of step.
--
-- ARGV[1]  subject 16, not after 7, ttl 5 (ms)
-- reply    I issued · O taken · L late · D damaged

local my_subject, not_after, ttl = struct.unpack('>c16I7I5', ARGV[1])

if now > not_after then
  return reply('L')
end
if damaged then
  return reply('D')
end
if raw then
  return reply(status == 9 and subject == my_subject and 'I' or 'O')
end

local ends = ceil_ms(now + ttl * 1000)
local nobody = string.rep('\0', 16)
write(struct.pack('>BBI4I7c16c16I7', 1, 41, 0, now, nobody, my_subject, ends), ends)
return reply('I')
