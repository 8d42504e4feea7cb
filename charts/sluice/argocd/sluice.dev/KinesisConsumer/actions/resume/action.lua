-- Undoes pause and drain.
if obj.metadata.annotations ~= nil then
  obj.metadata.annotations["sluice.dev/paused"] = nil
end
obj.spec.suspend = nil
return obj
