package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// buildIAMPolicyFunction computes the least IAM policy of a role on a topic on SQS.
type buildIAMPolicyFunction struct{}

func newBuildIAMPolicyFunction() function.Function { return buildIAMPolicyFunction{} }

var iamPolicyAttrTypes = map[string]attr.Type{"document": types.StringType, "notes": types.ListType{ElemType: types.StringType}}

func (buildIAMPolicyFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "build_iam_policy"
}

func (buildIAMPolicyFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The least IAM policy that a role needs on a topic on Amazon SQS",
		MarkdownDescription: "Computes an identity policy, for an IAM role or user, from a manifest and a role: an object with `document`, the policy in JSON with no action and no queue more than it takes, and `notes`, " +
			"sentences on what it allows and leaves out. By default a consumer sends nowhere. Where a queue has a KMS key of its own, the policy allows the use of that key.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "manifest", MarkdownDescription: "The `manifest` of a topic on SQS."},
			function.StringParameter{Name: "role", MarkdownDescription: "`consumer`, `publisher` or `operator`."},
		},
		Return: function.ObjectReturn{AttributeTypes: iamPolicyAttrTypes},
	}
}

func (buildIAMPolicyFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	manifest, role, ok := manifestAndRole(ctx, req, resp, topology.BrokerSQS, "build_permissions")
	if !ok {
		return
	}
	document, notes, err := topology.IAMPolicy(manifest, role)
	if err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, types.ObjectValueMust(iamPolicyAttrTypes, map[string]attr.Value{
		"document": types.StringValue(document), "notes": noteList(notes),
	}))
}
