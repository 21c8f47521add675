-- The server's time in milliseconds: one clock for all instances, and the one
-- by which keys expire.
local function time()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

-- Formats an integer in decimal; Lua writes large numbers with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end
