-- Refuse a request that has not come yet: the rows "refuse" of step.
--
-- ARGV[1]  not after 7, expire 5 (ms)
-- reply    X refused · P in progress: since 7, lease until 7 · S success, F failed: payload
--          s success without · U outcome unknown · T a token's key · L late · D damaged

local not_after, keep = struct.unpack('>I7I5', ARGV[1])

if now > not_after then
  return 'L' .. stamp
end
if damaged then
  return 'D' .. stamp
end

local fence = 0
if raw then
  if token then
    return 'T' .. stamp
  elseif status == 0 and struct.unpack('>I7', raw, state_at + 8) > now then
    return 'P' .. stamp .. string.sub(raw, state_at + 1, state_at + 14)
  elseif status == 0 and (marks % 2 == 1 or marks > 33 and marks % 4 == 2) then
    -- Past its checkpoint; or a takeover at rerun, of what may have been past its own.
    return 'U' .. stamp
  elseif status == 1 and head < 128 then
    return 's' .. stamp
  elseif status == 1 or status == 2 and head > 127 then
    return (status == 1 and 'S' or 'F') .. stamp .. string.sub(raw, state_at + 7)
  elseif status == 3 then
    return 'X' .. stamp
  end
  fence = struct.unpack('>I7', raw, 7)
end

local nobody = string.rep('\0', 16)
local my_head = kept and 67 or 3
local value = struct.pack('>BBI4I7c16', 1, my_head, 0, math.max(fence + 1, now), nobody)
redis.call('SET', key, value .. (kept or ''), 'PXAT', last_ms + keep)

if marks % 32 > 15 then
  redis.pcall('PUBLISH', 'idem:wake:' .. key, '')
end
return 'X' .. stamp
