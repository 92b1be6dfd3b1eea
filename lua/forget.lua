-- End a record that is still as read: the rows "forget" and "operator's release" of step.
--
-- ARGV[1]  status as read 1 (15 damaged), fence 7, release 1, force 1
-- reply    Y done · Z changed

local status_read, fence_read, release, force = struct.unpack('>BI7BB', ARGV[1])

if damaged then
  if force == 0 or status_read ~= 15 then
    return 'Z' .. stamp
  end
  redis.call('DEL', key)
  return 'Y' .. stamp
end
if not raw or struct.unpack('>I7', raw, 7) ~= fence_read then
  return 'Z' .. stamp
end
if status == 7 then
  return 'Y' .. stamp
end
if
  status ~= status_read
  or status == 0 and force == 0 and struct.unpack('>I7', raw, state_at + 8) > now
  or status == 1 and release == 1
then
  return 'Z' .. stamp
end

local ends = last_key_ms()
if not ends then
  return 'Z' .. stamp
end
-- A record that somebody made permanent leaves a mark of a minute.
ends = math.max(ends < 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)
local value = '\1\71\0\0\0\0' .. string.sub(raw, 7, 29) .. struct.pack('>I7', (ends + 1) * 1000)
redis.call('SET', key, value, 'PXAT', ends)

if marks % 32 > 15 then
  redis.pcall('PUBLISH', 'idem:wake:' .. key, '')
end
return 'Y' .. stamp
