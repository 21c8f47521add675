-- Sets the status message. Arguments: message.
if not is_running() then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'message', ARGV[1])
set_updated()
return { 'ok' }
