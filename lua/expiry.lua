-- For the steps that have to know when the key expires; put between record.lua and the step.

-- The last millisecond at which the key is there; negative for one that stays.
local function last_key_ms()
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then
    return at
  end
  -- Redis 6.2 only tells what is left.
  local left = redis.call('PTTL', key)
  return left < 0 and left or math.floor(now / 1000) + left
end

