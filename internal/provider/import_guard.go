package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// importedKey is where a plan leaves that it would replace what the same run imports, for the Delete of that replacement.
const importedKey = "replaces_import"

// noteImported notes a queue that this run imports.
func (rt *runtime) noteImported(vhost, queue string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.imported[objectKey("queue", vhost, queue)] = true
}

// guardImport has Delete refuse a replacement in the very run that imports: the queue is somebody's live one, and what was
// meant is that it stays. A configuration of another convention, say, would delete it where it is empty.
func (rt *runtime) guardImport(ctx context.Context, vhost, queue string, adopt types.Bool, resp *resource.ModifyPlanResponse) {
	rt.mu.Lock()
	imported := rt.imported[objectKey("queue", vhost, queue)]
	rt.mu.Unlock()
	if !imported || adopt.ValueBool() {
		return
	}
	resp.Diagnostics.AddAttributeWarning(path.Root("arguments"), fmt.Sprintf("Queue %q is imported and would be replaced", queue),
		fmt.Sprintf("Queue %q in vhost %q differs from the configuration that imports it, and RabbitMQ cannot change a queue's arguments. Apply will not delete a queue in the run that imports it. %s", queue, vhost, importAdvice))
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
}

const importAdvice = "Write the configuration as the queue is: import it under the convention of what made it (?convention=shove at the end of the id, and convention = \"shove\"), " +
	"name its arguments in extra_arguments, or accept a difference with ignore_arguments. Where it is to be replaced all the same, set adopt_existing = true, or import it in a run of its own first."

// refuseImported refuses a Delete that a plan has marked with guardImport, and forgets the mark.
func refuseImported(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, vhost, queue string) (refused bool) {
	passed, _ := req.Private.GetKey(ctx, importedKey)
	if string(passed) != "true" {
		return false
	}
	resp.Diagnostics.AddError(fmt.Sprintf("Queue %q is imported and was not replaced", queue),
		fmt.Sprintf("Queue %q in vhost %q was imported by this run and is as it was: it differs from the configuration, and would have been deleted to be made anew. %s", queue, vhost, importAdvice))
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("false"))...)
	clearPassed(ctx, resp.Private, &resp.Diagnostics)
	return true
}
