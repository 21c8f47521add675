-- Stores a question for the client. Arguments: key, question.
if not is_running() then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'question:' .. ARGV[1], ARGV[2])
set_updated()
return { 'ok' }
