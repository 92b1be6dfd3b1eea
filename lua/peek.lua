-- Read a record without changing it.
--
-- reply    Q a record: when it expires 7, its bytes · N nothing here · D damaged

if damaged then
  return reply('D')
end
if not raw or status == 7 or status == 8 then
  return reply('N')
end
return struct.pack('>c1I7I7', 'Q', now, expires_at() or 2 ^ 53 - 1) .. raw
