-- Read a record without changing it.
--
-- reply    Q a record: when it expires 7, its bytes · N nothing here · D damaged

if damaged then
  return 'D' .. stamp
end
if not raw or status == 7 or status == 8 then
  return 'N' .. stamp
end
local last = last_key_ms()
if not last then
  return 'N' .. stamp
end
local expires = last < 0 and 2 ^ 53 - 1 or (last + 1) * 1000
return 'Q' .. stamp .. struct.pack('>I7', expires) .. raw
