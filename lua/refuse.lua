-- Refuse a request that has not come yet: the rows "refuse" of step.
--
-- ARGV[1]  not after 7, expire 5 (ms)
-- reply    X refused · P in progress: since 7, lease left 7 · S success, F failed: payload
--          s success without · U outcome unknown · T a token's key · L late · D damaged

local not_after, keep = struct.unpack('>I7I5', ARGV[1])

if now > not_after then
  return reply('L')
end
if damaged then
  return reply('D')
end

if raw then
  if subject then
    return reply('T')
  elseif status == 0 and lease_until > now then
    return struct.pack('>c1I7I7I7', 'P', now, since, lease_until - now)
  elseif status == 0 and marked(1) then
    return reply('U')
  elseif status == 1 and head < 128 then
    return reply('s')
  elseif (status == 1 or status == 2) and head > 127 then
    return reply(status == 1 and 'S' or 'F') .. string.sub(raw, state_at + 7)
  elseif status == 3 then
    return reply('X')
  end
end

fence = math.max((fence or 0) + 1, now)
attempt, owner = 0, string.rep('\0', 16)
write(front(3, ''), ceil_ms(now + keep * 1000))
wake()
return reply('X')
