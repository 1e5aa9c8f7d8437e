package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsRuntime is what the SQS resources of one run share. Its client is made by the first that needs it: a configuration without
// any never touches AWS.
type sqsRuntime struct {
	cfg sqsadmin.Config
	// defaultTags may be unknown while planning, or have unknown values.
	defaultTags types.Map
	// unknown: some part of the configuration is only known after another resource was applied.
	unknown bool

	once   sync.Once
	client *sqsadmin.Client
	err    error
	// noted are the attributes of queues, by ARN, as this run read or plans them.
	noted map[string]topology.SQSAttributes

	// said: why SQS cannot be used was reported. unchecked: that a plan could not ask was said.
	said, unchecked sync.Once
}

var errSQSUnknown = errors.New("the provider's SQS configuration is not known yet: it comes from a resource that was not applied; apply that first (terraform apply -target=...)")

// configureSQS reads the configuration. It looks for nothing: what it leaves out the client looks for, once there is one.
func (rt *runtime) configureSQS(ctx context.Context, object types.Object, version string) diag.Diagnostics {
	var diags diag.Diagnostics
	rt.sqs.defaultTags = types.MapNull(types.StringType)
	if object.IsUnknown() {
		rt.sqs.unknown, rt.sqs.defaultTags = true, types.MapUnknown(types.StringType)
		return diags
	}
	var m sqsConfigModel
	if !object.IsNull() {
		if diags.Append(object.As(ctx, &m, basetypes.ObjectAsOptions{})...); diags.HasError() {
			return diags
		}
		rt.sqs.defaultTags = m.DefaultTags
	}
	for _, value := range []attr.Value{m.Region, m.Profile, m.Endpoint, m.AccessKey, m.SecretKey, m.SessionToken, m.AssumeRole, m.AccountID, m.MaxRetries} {
		rt.sqs.unknown = rt.sqs.unknown || !fullyKnown(value)
	}
	if rt.sqs.unknown {
		return diags
	}
	rt.sqs.cfg = sqsadmin.Config{
		Region: m.Region.ValueString(), Profile: m.Profile.ValueString(), Endpoint: m.Endpoint.ValueString(),
		AccessKey: m.AccessKey.ValueString(), SecretKey: m.SecretKey.ValueString(), SessionToken: m.SessionToken.ValueString(),
		Account: m.AccountID.ValueString(), UserAgentVersion: version,
		Logf:      func(ctx context.Context, msg string, fields map[string]any) { tflog.Debug(ctx, msg, fields) },
		Progressf: func(ctx context.Context, msg string, fields map[string]any) { tflog.Info(ctx, msg, fields) },
	}
	if !m.MaxRetries.IsNull() {
		n := int(m.MaxRetries.ValueInt64())
		rt.sqs.cfg.MaxRetries = &n
	}
	if !m.AssumeRole.IsNull() {
		var role assumeRoleModel
		diags.Append(m.AssumeRole.As(ctx, &role, basetypes.ObjectAsOptions{})...)
		rt.sqs.cfg.AssumeRole = sqsadmin.AssumeRole{ARN: role.RoleARN.ValueString(), SessionName: role.SessionName.ValueString(), ExternalID: role.ExternalID.ValueString()}
	}
	if err := rt.sqs.cfg.Validate(); err != nil {
		diags.AddAttributeError(path.Root("sqs"), "Invalid SQS configuration", sentence(err))
	}
	return diags
}

// sqsPlace is where queues are, and the client that reaches them.
type sqsPlace struct {
	client *sqsadmin.Client
	// where has region, account and partition; nothing of a topic.
	where    topology.SQSIdentity
	endpoint string
}

// sqsPlace says where queues are. Who only plans can go on without.
func (rt *runtime) sqsPlace(ctx context.Context) (sqsPlace, error) {
	if rt.sqs.unknown {
		return sqsPlace{}, errSQSUnknown
	}
	rt.sqs.once.Do(func() { rt.sqs.client, rt.sqs.err = sqsadmin.New(context.WithoutCancel(ctx), rt.sqs.cfg) })
	if rt.sqs.err != nil {
		return sqsPlace{}, rt.sqs.err
	}
	account, err := rt.sqs.client.Account(ctx)
	if err != nil {
		return sqsPlace{}, err
	}
	region := rt.sqs.client.Region()
	return sqsPlace{
		client: rt.sqs.client, endpoint: rt.sqs.client.Endpoint(),
		where: topology.SQSIdentity{Region: region, Account: account, Partition: topology.SQSPartition(region)},
	}, nil
}

// address is that of a queue.
func (p sqsPlace) address(queue string) sqsadmin.Address {
	return sqsadmin.Address{Name: queue, URL: p.where.URL(queue, p.endpoint), ARN: p.where.ARN(queue)}
}

// in is an identity at this place.
func (p sqsPlace) in(id topology.SQSIdentity) topology.SQSIdentity {
	id.Region, id.Account, id.Partition = p.where.Region, p.where.Account, p.where.Partition
	return id
}

// refuseElsewhere refuses a queue that the state has at another place: it would be orphaned there, or another one of its
// name be taken for it.
func (p sqsPlace) refuseElsewhere(arn string) error {
	if arn == "" {
		return nil // it is being imported
	}
	was, queue, err := topology.ParseSQSARN(arn)
	switch {
	case err != nil:
		return err
	case was.Region == p.where.Region && was.Account == p.where.Account:
		return nil
	}
	return fmt.Errorf("the state has queue %q in region %s of account %s, and the provider works on region %s of account %s, so that nothing was read or changed; "+
		"set sqs.region and the credentials (or sqs.account_id) back, or give the resource a provider of its own (provider = redeliver.ALIAS); "+
		"to leave that queue alone and start anew here, remove it from the state (terraform state rm)",
		queue, was.Region, was.Account, p.where.Region, p.where.Account)
}

// saySQS says once why SQS cannot be used, which every resource needs.
func (rt *runtime) saySQS(diags *diag.Diagnostics, err error) {
	rt.sqs.said.Do(func() { addError(diags, "SQS cannot be used", err) })
}

// sqsReader returns where queues are for a refresh. While that is not known, or cannot be, the state is kept as it is.
func (rt *runtime) sqsReader(ctx context.Context, diags *diag.Diagnostics) (sqsPlace, bool) {
	rt.refreshed.Store(true)
	place, err := rt.sqsPlace(ctx)
	switch {
	case errors.Is(err, errSQSUnknown):
		diags.AddWarning("Not compared with SQS", "The provider's SQS configuration is not known yet, so this plan trusts the state as it was last seen.")
	case err != nil:
		rt.saySQS(diags, err)
	default:
		return place, true
	}
	return place, false
}

// mergedTags are the default tags with a resource's own over them; unknown while any is not known.
func (rt *runtime) mergedTags(own types.Map) types.Map {
	if !fullyKnown(own) || !fullyKnown(rt.sqs.defaultTags) {
		return types.MapUnknown(types.StringType)
	}
	merged := map[string]attr.Value{}
	for _, tags := range []types.Map{rt.sqs.defaultTags, own} {
		for key, value := range tags.Elements() {
			if !value.IsNull() { // as if it were not written, so that a condition can leave out a tag
				merged[key] = value
			}
		}
	}
	return types.MapValueMust(types.StringType, merged)
}
