-- Say what an attempt has done, if its record is still as read: the row "resolve" of step.
--
-- ARGV[1]  verdict 1 (1 done with a result, 2 done, 4 not done), force 1, fence 7
-- ARGV[2]  the result of verdict 1, otherwise empty
-- reply    Y done · Z changed

local verdict, force, fence_read = struct.unpack('>BBI7', ARGV[1])

if damaged or not raw or status ~= 0 or struct.unpack('>I7', raw, 7) ~= fence_read then
  return 'Z' .. stamp
end
local lease_until, keep = struct.unpack('>I7I6', raw, state_at + 8)
if lease_until > now and force == 0 then
  return 'Z' .. stamp
end

local has_payload = verdict == 1
local my_head = head % 64 + (verdict < 4 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)
local front = '\1' .. string.char(my_head) .. string.sub(raw, 3, bound_end) .. (kept or '')
local value = front .. stamp .. (has_payload and ARGV[2] or '')
redis.call('SET', key, value, 'PXAT', last_ms + keep)

if marks % 32 > 15 then
  redis.pcall('PUBLISH', 'idem:wake:' .. key, '')
end
return 'Y' .. stamp
