-- Sets the log level and notifies all instances. Arguments: level, channel, message.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'level', ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return { 'ok' }
