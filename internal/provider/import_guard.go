package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What a run imports, or moves in from another provider, is somebody's live queue, and what was meant is that it stays.
//
// importedKey is where the refresh of an import notes that it was one, in the private state; the refresh of the next run
// forgets it. replacesImportKey is where a plan notes that it would replace what is imported, for the Delete of that
// replacement, which sees the plan's private state.
const (
	importedKey       = "imported"
	replacesImportKey = "replaces_import"
)

var (
	yes = []byte("true")
	no  = []byte("false")
)

// noteImported is called by every Read.
func noteImported(ctx context.Context, imported bool, resp *resource.ReadResponse) {
	switch {
	case resp.Private == nil: // a list, which keeps no state
	case imported:
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, yes)...)
	case noted(ctx, resp.Private, importedKey):
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, no)...)
	}
}

func noted(ctx context.Context, private privateState, key string) bool {
	value, _ := private.GetKey(ctx, key)
	return string(value) == string(yes)
}

// guardImport has Delete refuse a replacement in the very run that imports: a configuration of another convention, say, would
// delete the queue where it is empty.
func guardImport(ctx context.Context, vhost, queue string, adopt types.Bool, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !noted(ctx, req.Private, importedKey) || adopt.ValueBool() {
		return
	}
	resp.Diagnostics.AddAttributeWarning(path.Root("arguments"), fmt.Sprintf("Queue %q is imported and would be replaced", queue),
		fmt.Sprintf("Queue %q in vhost %q differs from the configuration that imports it, and RabbitMQ cannot change a queue's arguments. Apply will not delete a queue in the run that imports it. %s", queue, vhost, importAdvice))
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, replacesImportKey, yes)...)
}

const importAdvice = "Write the configuration as the queue is: import it under the convention of what made it (?convention=shove at the end of the id, and convention = \"shove\"), " +
	"name its arguments in extra_arguments, or accept a difference with ignore_arguments. Where it is to be replaced all the same, set adopt_existing = true, or import it in a run of its own first."

// refuseImported refuses a Delete that a plan has marked with guardImport, and forgets the mark.
func refuseImported(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, vhost, queue string) (refused bool) {
	if !noted(ctx, req.Private, replacesImportKey) {
		return false
	}
	resp.Diagnostics.AddError(fmt.Sprintf("Queue %q is imported and was not replaced", queue),
		fmt.Sprintf("Queue %q in vhost %q was imported by this run and is as it was: it differs from the configuration, and would have been deleted to be made anew. %s", queue, vhost, importAdvice))
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, replacesImportKey, no)...)
	clearPassed(ctx, resp.Private, &resp.Diagnostics)
	return true
}

// warnOfKeptBindings says that Update leaves the bindings which a run imports and its configuration lacks. Nobody knows whose
// they are: a binding resource may have them, and a publisher rely on them.
func (m *topicModel) warnOfKeptBindings(ctx context.Context, state *topicModel, req resource.ModifyPlanRequest, diags *diag.Diagnostics) {
	if !noted(ctx, req.Private, importedKey) || m.Bindings.IsUnknown() {
		return
	}
	kept := without(state.bindings(ctx), m.bindings(ctx))
	if len(kept) == 0 {
		return
	}
	listed := make([]string, len(kept))
	for i, b := range kept {
		listed[i] = fmt.Sprintf("exchange %q with key %q", b.Source, b.RoutingKey)
	}
	name := state.Name.ValueString()
	diags.AddAttributeWarning(path.Root("bindings"), fmt.Sprintf("Topic %q keeps bindings that are not its own", name),
		fmt.Sprintf("Topic %q in vhost %q is imported, and its configuration lacks bindings that it has: %s. They stay on the broker and are nobody's in this configuration, unless a %s has them. "+
			"Name them in bindings to have the topic own them; to be rid of one, unbind it by hand.", name, state.VHost.ValueString(), strings.Join(listed, ", "), bindingTypeName))
}
