-- End a record that is still as read: the rows "forget" and "operator's release" of step.
--
-- ARGV[1]  status as read 1 (15 damaged), fence 7, release 1, force 1
-- reply    Y done · Z changed

local status_read, fence_read, release, force = struct.unpack('>BI7BB', ARGV[1])

if damaged then
  if force == 0 or status_read ~= 15 then
    return reply('Z')
  end
  redis.call('DEL', key)
  return reply('Y')
end
if not raw or fence ~= fence_read then
  return reply('Z')
end
if status == 7 then
  return reply('Y')
end
if
  status ~= status_read
  or status == 0 and lease_until > now and force == 0
  or status == 1 and release == 1
then
  return reply('Z')
end

-- A record that somebody made permanent leaves an ordinary mark.
local ends = math.max(expires_at() or ceil_ms(now + 60000000), mark_to_keep() or 0)
write(struct.pack('>BBI4I7c16I7', 1, 71, 0, fence, owner, ends), ends)
wake()
return reply('Y')
