-- Asks the follower to reconnect, if there is one. Arguments: stream, retry.
if redis.call('HEXISTS', KEYS[1], 'channel') == 1 then
  redis.call('HSET', KEYS[1], 'disconnect', ARGV[5])
  wake(KEYS[1])
end
return { 'ok' }
