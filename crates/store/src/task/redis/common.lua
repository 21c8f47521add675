-- Functions of all task scripts, prepended to each of them. mod.rs documents the
-- keys. KEYS[1]: the task. Times are in milliseconds.
local now = time()

local function is_running()
  local created = redis.call('HMGET', KEYS[1], 'created', 'end')
  return created[1] and not created[2]
end

local function set_updated()
  redis.call('HSET', KEYS[1], 'updated', digits(now))
end

-- Removes all questions and answers of an ended task.
local function remove_questions()
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if field:sub(1, 9) == 'question:' or field:sub(1, 7) == 'answer:' then
      redis.call('HDEL', KEYS[1], field)
    end
  end
end

-- Makes the instance that runs the task read it again.
local function wake(channel, message)
  redis.call('PUBLISH', channel, message)
end
