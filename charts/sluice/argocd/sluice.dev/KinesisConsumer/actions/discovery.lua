-- Which actions a person may take on a sluice.dev/KinesisConsumer in Argo CD. One that would change nothing is disabled.
local actions = {
  pause = {disabled = true, displayName = "Pause: hands off, the driver runs on", iconClass = "fa fa-fw fa-hand-paper"},
  resume = {disabled = true, displayName = "Resume after pause or drain", iconClass = "fa fa-fw fa-play-circle"},
  retry = {disabled = true, displayName = "Retry the migration or the move of positions", iconClass = "fa fa-fw fa-redo"},
  restart = {disabled = true, displayName = "Restart the driver", iconClass = "fa fa-fw fa-sync"},
  drain = {disabled = true, displayName = "Drain: end the batch, then stop", iconClass = "fa fa-fw fa-pause-circle"},
}
if obj.metadata.deletionTimestamp ~= nil then
  return actions
end
local note = (obj.metadata.annotations or {})["sluice.dev/paused"]
local paused = note ~= nil and note ~= "false"
local suspended = obj.spec.suspend == true
local status = obj.status or {}
local migration, position = (status.migration or {}).state, status.position or {}
local tried = migration == "Failed" or migration == "SourceActive" or migration == "Lost"
if obj.spec.position ~= nil and obj.spec.position.id == position.id then
  local again = {Refused = true, Held = true, Lost = true, Failing = true}
  tried = tried or again[position.state] == true
end
actions.pause.disabled = paused
actions.resume.disabled = not (paused or suspended)
actions.drain.disabled = suspended
local completed = status.phase == "Completed"
actions.restart.disabled = paused or suspended or completed or (status.driver or {}).attempt == nil or status.driver.attempt == 0 or obj.spec.replicas == 0
actions.retry.disabled = paused or suspended or not tried
return actions
