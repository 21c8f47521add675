-- Closes a stream if it is open and belongs to the writer. Arguments: stream, replay,
-- linger, writer, final message (or ''), events, bytes, age.
local stream = ARGV[4]
local log = redis.call('HMGET', KEYS[1], 'writer', 'until')
if log[1] ~= ARGV[7] or log[2] then
  return { 'none' }
end
close(stream, tonumber(ARGV[5]), tonumber(ARGV[6]))
if ARGV[8] ~= '' then
  push(session, stream, ARGV[8], { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) })
else
  wake(KEYS[1])
end
return { 'ok' }
