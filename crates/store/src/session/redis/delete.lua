-- Ends a session and its streams, and notifies all instances. Arguments: channel, message.
local own = redis.call('HGET', KEYS[1], 'own')
if not own then
  return { 'none' }
end

local streams = redis.call('ZRANGE', key('streams', session), 0, -1)
table.insert(streams, own)
for _, stream in ipairs(streams) do
  redis.call('UNLINK', key('log', session, stream), key('stream', session, stream))
end
for _, uri in ipairs(redis.call('SMEMBERS', key('subscriptions', session))) do
  redis.call('ZREM', subscribers(uri), session)
end

redis.call('UNLINK', KEYS[1], key('subscriptions', session), key('streams', session))
redis.call('ZREM', sessions, session)
redis.call('ZREM', living, session)
redis.call('PUBLISH', ARGV[4], ARGV[5])
return { 'ok' }
