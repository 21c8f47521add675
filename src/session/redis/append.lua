-- Appends the message of a position: stream, position, message, replay, linger,
-- events, bytes, age. With a replay time (not '') it is the last.
-- Doing so again does nothing, so a writer that heard no answer may try again.
local stream, position = ARGV[4], tonumber(ARGV[5])
local log = redis.call('HMGET', KEYS[1], 'last', 'until')
local last = tonumber(log[1] or '-1')
if position <= last then
  return { 'ok' }
end
if last < 0 or log[2] then
  return { 'none' }
end
-- What was acknowledged has been lost with a failover: a gap is no stream.
if position > last + 1 then
  return { 'none' }
end
-- First, so that whoever is woken sees both.
if ARGV[7] ~= '' then
  close(stream, tonumber(ARGV[7]), tonumber(ARGV[8]))
end
push(session, stream, ARGV[6], { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) })
return { 'ok' }
