-- For the steps that have to know when the key expires; put between record.lua and the step.

-- The last millisecond at which the key is there; negative for one that stays, nil for one that is
-- over by now.
local function last_key_ms()
  local last = redis.pcall('PEXPIRETIME', key)
  if type(last) == 'number' then
    return last
  end
  local at
  local function clock_ms()
    at = redis.call('TIME')
    return at[1] * 1000 + math.floor(at[2] / 1000)
  end
  -- Redis 6.2 only tells what is left, counted from a moment that lies between two looks at the
  -- clock: exact if both show the same millisecond.
  local before, left, after
  repeat
    before = clock_ms()
    left = redis.call('PTTL', key)
    after = clock_ms()
  until left < 1 or before == after
  if left > 0 then
    return after + left
  elseif left < 0 then
    return left
  end
  -- It never tells less than nothing, and a script sees a key that was there when it began: this
  -- one has come to its last millisecond or is behind it. When another one shows, it is over.
  repeat
    local is_over = clock_ms() ~= after
  until is_over
  now = at[1] * 1000000 + at[2]
  stamp = struct.pack('>I7', now)
end
