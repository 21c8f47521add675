-- Appends the message of a position: stream, position, message, events, bytes, age.
-- Doing so again does nothing, so a writer that heard no answer may try again.
local stream, position = ARGV[4], tonumber(ARGV[5])
local log = redis.call('HMGET', KEYS[1], 'last', 'until')
if not log[1] or log[2] then
  return { 'none' }
end
local last = tonumber(log[1])
if position <= last then
  return { 'ok' }
end
-- What was acknowledged has been lost with a failover: a gap is no stream.
if position > last + 1 then
  return { 'none' }
end
push(session, stream, ARGV[6], { events = tonumber(ARGV[7]), bytes = tonumber(ARGV[8]), age = tonumber(ARGV[9]) })
return { 'ok' }
