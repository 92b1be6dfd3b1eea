-- Say what an attempt has done, if its record is still as read: the row "resolve" of step.
--
-- ARGV[1]  verdict 1 (1 done with a result, 2 done, 4 not done), force 1, fence 7
-- ARGV[2]  the result of verdict 1, otherwise empty
-- reply    Y done · Z changed

local verdict, force, as_read = struct.unpack('>BBI7', ARGV[1])

if damaged or not raw or fence ~= as_read or status ~= 0 or lease_until > now and force == 0 then
  return reply('Z')
end

local bound = string.sub(raw, 30, bound_end)
write_finished(verdict == 4 and 2 or 1, bound, verdict == 1 and ARGV[2] or nil, expire)
wake()
return reply('Y')
