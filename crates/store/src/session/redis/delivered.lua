-- Records the last delivered position of a session's standalone stream, if the
-- follower has not been cut off. Arguments: stream, channel, follower, position.
local state = redis.call('HMGET', KEYS[1], 'channel', 'follower')
if state[1] ~= ARGV[5] or state[2] ~= ARGV[6] then
  return { 'cut' }
end
redis.call('HSET', KEYS[1], 'delivered', ARGV[7])
return { 'ok' }
