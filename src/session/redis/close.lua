-- Closes a stream of a writer's: stream, replay, linger, writer, last words (or ''),
-- events, bytes, age. It can be resumed for the replay time; whoever is
-- reading then gets the linger time to finish.
local stream = ARGV[4]
local log = redis.call('HMGET', KEYS[1], 'writer', 'until')
if log[1] ~= ARGV[7] or log[2] then
  return { 'none' }
end
local till = now + tonumber(ARGV[5])
local gone = till + tonumber(ARGV[6])
redis.call('PEXPIREAT', KEYS[1], digits(gone))
redis.call('PEXPIREAT', key('stream', session, stream), digits(gone))
if ARGV[8] ~= '' then
  push(session, stream, ARGV[8], { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) })
end
redis.call('HSET', KEYS[1], 'until', digits(till))
redis.call('ZADD', key('streams', session), digits(till), stream)
wake(KEYS[1])
return { 'ok' }
