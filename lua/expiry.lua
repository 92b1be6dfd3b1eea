-- For the steps that have to know when the key expires; put between record.lua and the step.

-- The last millisecond at which the key is there; negative for one that stays.
local function last_key_ms()
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then
    return at
  end
  -- Redis 6.2 only tells what is left, counted from a moment that lies between two looks at the
  -- clock: exact if both show the same millisecond. It never tells less than nothing.
  local before, left
  repeat
    before = redis.call('TIME')
    left = redis.call('PTTL', key)
    at = redis.call('TIME')
  until left < 1 or before[1] == at[1] and math.floor(before[2] / 1000) == math.floor(at[2] / 1000)
  if left == 0 then
    return last_ms
  end
  return left < 0 and left or at[1] * 1000 + math.floor(at[2] / 1000) + left
end

