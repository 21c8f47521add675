# Members of records by their names; a name with dots leads into members, unless it is one itself.
def member($name):
  reduce ($name / ".")[] as $step (.; if type == "object" then .[$step] else null end);
def named($name):
  if type != "object" then null elif has($name) then .[$name] else member($name) end;
def knows($name):
  if type != "object" then false else has($name) or has(($name / ".")[0]) end;
def any_known: . as $value | any($names[]; . as $name | $value | knows($name));
def chosen: . as $record | reduce $names[] as $name ({}; . + { ($name): ($record | named($name)) });

[if type == "array" then .[] elif any_known then . else root end] as $records
| [$names[] | . as $name | select([$records[] | knows($name)] | any | not)] as $missing
| if ($records | length) > 0 and ($missing | length) > 0 then
    ($records[0] | if type == "object" then keys_unsorted else [] end) as $there
    | error("fields: no record has \($missing | join(", ")); the first one has \($there | join(", "))")
  else $records[] | chosen end
