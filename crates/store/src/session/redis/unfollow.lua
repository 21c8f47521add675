-- Removes a follower from its stream. Arguments: stream, channel, follower.
local state = redis.call('HMGET', KEYS[1], 'channel', 'follower')
if state[1] == ARGV[5] and state[2] == ARGV[6] then
  redis.call('HDEL', KEYS[1], 'channel', 'follower', 'disconnect')
end
return { 'ok' }
