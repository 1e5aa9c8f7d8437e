package provider

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// partModel are the attributes that every resource of a topic has: the topic's
// own, its ladder, its dead-letter queue and its parked queue.
type partModel struct {
	ID              types.String  `tfsdk:"id"`
	VHost           types.String  `tfsdk:"vhost"`
	Convention      types.String  `tfsdk:"convention"`
	ConsumerGroup   types.String  `tfsdk:"consumer_group"`
	ExtraArguments  types.Dynamic `tfsdk:"extra_arguments"`
	IgnoreArguments types.Set     `tfsdk:"ignore_arguments"`
	DeleteNonEmpty  types.Bool    `tfsdk:"delete_non_empty"`
	AdoptExisting   types.Bool    `tfsdk:"adopt_existing"`
	SettingsVia     types.String  `tfsdk:"settings_via"`
	MergePolicy     types.Bool    `tfsdk:"merge_policy"`
	Exchanges       types.Set     `tfsdk:"exchanges"`
}

var bindingType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"exchange": types.StringType, "routing_key": types.StringType,
}}

// partAttributes adds the attributes of [partModel] to a resource's own.
// object says what the resource makes, for the documentation.
func partAttributes(object, importForm string, own map[string]schema.Attribute) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The identifier the resource is imported by: `" + importForm + "`, percent-encoded.",
		},
		"vhost": schema.StringAttribute{
			Optional: true, Computed: true, Validators: vhostName(),
			MarkdownDescription: "The virtual host. Defaults to the provider's `rabbitmq.vhost`. Changing it replaces the resource.",
		},
		"convention": schema.StringAttribute{
			Optional: true, Computed: true, Validators: oneOf(topology.Conventions()),
			MarkdownDescription: "The naming and argument scheme: `redeliver`, `shove`, `acemq`, `rabbitkit` or `queuey`. Defaults to the provider's. Changing it replaces the resource.",
		},
		"consumer_group": schema.StringAttribute{
			Optional: true, Computed: true, Validators: nameOf("consumer group"),
			MarkdownDescription: "Put between the topic's name and what is derived from it. Only the `shove` convention has consumer groups. Defaults to the provider's. Changing it replaces the resource.",
		},
		"extra_arguments": schema.DynamicAttribute{
			Optional: true,
			MarkdownDescription: "Arguments of " + object + " beyond the contract, such as `{ \"x-queue-leader-locator\" = \"balanced\" }`. One that bounds a queue (`x-max-length`, `x-message-ttl`) can make the broker drop messages, dead letters too. Types are kept: a number stays a number and `\"5000\"` a string. " +
				"An argument that the contract computes is refused. Changing one replaces the queue (with `on_argument_change = \"migrate\"`, where the resource has that: in place).",
		},
		"ignore_arguments": schema.SetAttribute{
			Optional: true, ElementType: types.StringType,
			MarkdownDescription: "Arguments whose drift is accepted, by name: a difference on the broker is left as it is and does not replace the queue.",
		},
		"delete_non_empty": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Delete or replace " + object + " although messages are in it, or although something still needs it: those messages are lost. Defaults to `false`. " +
				"Before a plain destroy it takes an apply of its own.",
		},
		"adopt_existing": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "On create, where one of that name exists with the same arguments: take over " + object + " instead of refusing. In a run that imports, replace what has other arguments, which is refused otherwise. Defaults to `false`.",
		},
		"exchanges": schema.SetAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "The exchanges of the topology that the resource needs and declares. One that is missing on the broker shows as drift.",
		},
	}
	maps.Copy(attributes, settingsViaAttributes(object))
	maps.Copy(attributes, own)
	return attributes
}

func argumentsAttribute(of string) schema.Attribute {
	return schema.MapAttribute{
		Computed: true, ElementType: types.StringType,
		MarkdownDescription: "Every argument of " + of + " as canonical JSON, by name: what the broker has, and in a plan what the configuration computes. " +
			"RabbitMQ cannot change a queue's arguments, so a difference replaces the queue. With `settings_via = \"policy\"`, the arguments that no policy can set.",
	}
}

func warningsAttribute(ids ...string) schema.Attribute {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = "`" + id + "`"
	}
	return schema.SetAttribute{
		Optional: true, ElementType: types.StringType,
		Validators:          []validator.Set{setvalidator.ValueStringsAre(oneOf(ids)...)},
		MarkdownDescription: "Standing warnings that were read and are accepted, so that plans show them no more: " + strings.Join(list, ", ") + ".",
	}
}

// resolve fills in what the configuration leaves to the provider's defaults. known is false while any of it is not known.
func (m *partModel) resolve(rt *runtime, state *partModel) (known bool) {
	m.VHost, m.Convention, m.ConsumerGroup = rt.identity(m, state)
	return allKnown([]attr.Value{m.VHost, m.Convention, m.ConsumerGroup})
}

// settle is resolve once everything can be known: what the plan knew is kept.
func (m *partModel) settle(rt *runtime) (known bool) {
	for _, attribute := range []*types.String{&m.VHost, &m.Convention, &m.ConsumerGroup} {
		if attribute.IsUnknown() {
			*attribute = types.StringNull()
		}
	}
	return m.resolve(rt, nil)
}

// identityOf is the identity that state or a finished plan holds.
func (m *partModel) identityOf(topic types.String) topology.Identity {
	return topology.Identity{
		Topic: topic.ValueString(), VHost: m.VHost.ValueString(),
		Convention: topology.Convention(m.Convention.ValueString()), ConsumerGroup: m.ConsumerGroup.ValueString(),
	}
}

// params are the import id's parameters that tell the identity from the default.
func (m *partModel) params() map[string]string {
	params := map[string]string{"consumer_group": m.ConsumerGroup.ValueString()}
	if c := m.Convention.ValueString(); c != string(topology.Redeliver) {
		params["convention"] = c
	}
	return params
}

// extra reads extra_arguments. known is false while they, or what is to be ignored of them, are not known.
func (m *partModel) extra(diags *diag.Diagnostics) (args topology.Arguments, known bool) {
	args, known, err := dynamicArguments(m.ExtraArguments)
	if err != nil {
		diags.AddAttributeError(path.Root("extra_arguments"), "Invalid extra arguments", sentence(err))
	}
	return args, known && fullyKnown(m.IgnoreArguments)
}

// recogniseExtra fills in extra_arguments of queues that are being imported: what they have beyond the contract, by
// argument or by their own policy, but for what that copied from another one.
func (m *partModel) recogniseExtra(queues []topology.Queue, shown map[string]map[string]string, copied topology.Arguments) {
	extra := beyond(queues, shown)
	maps.DeleteFunc(extra, func(key string, value any) bool {
		from, ok := copied[key]
		return ok && topology.CanonicalJSON(from) == topology.CanonicalJSON(value)
	})
	if len(extra) > 0 {
		m.ExtraArguments = types.DynamicValue(attrValue(map[string]any(extra)))
	}
}

// importPart reads an import id into the attributes of the identity.
func (m *partModel) importPart(text string, params ...string) (id importID, topic types.String, err error) {
	id, err = parseImportID(text, "VHOST/TOPIC", append([]string{"convention", "consumer_group"}, params...)...)
	if err != nil {
		return id, topic, err
	}
	convention, err := topology.ParseConvention(id.params["convention"])
	if err != nil {
		return id, topic, err
	}
	identity := topology.Identity{Topic: id.segments[1], VHost: id.segments[0], Convention: convention, ConsumerGroup: id.params["consumer_group"]}
	if err := identity.Validate(); err != nil {
		return id, topic, err
	}
	m.VHost, m.Convention = types.StringValue(identity.VHost), types.StringValue(string(convention))
	if identity.ConsumerGroup != "" {
		m.ConsumerGroup = types.StringValue(identity.ConsumerGroup)
	}
	return id, types.StringValue(identity.Topic), nil
}

// nullPart is a model in which nothing is set, in the types that the framework wants.
func nullPart() partModel {
	return partModel{
		IgnoreArguments: types.SetNull(types.StringType), Exchanges: types.SetNull(types.StringType),
		DeleteNonEmpty: types.BoolValue(false), AdoptExisting: types.BoolValue(false), ExtraArguments: types.DynamicNull(),
	}
}

func stringsOf(ctx context.Context, set types.Set) []string {
	var out []string
	set.ElementsAs(ctx, &out, false)
	return out
}

func mapOf(ctx context.Context, m types.Map) map[string]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	out := map[string]string{}
	m.ElementsAs(ctx, &out, false)
	return out
}

func stringSet(values []string) types.Set {
	elements := make([]attr.Value, len(values))
	for i, v := range values {
		elements[i] = types.StringValue(v)
	}
	return types.SetValueMust(types.StringType, elements)
}

func stringMap(values map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(values))
	for key, v := range values {
		elements[key] = types.StringValue(v)
	}
	return types.MapValueMust(types.StringType, elements)
}

func bindingSet(bindings []topology.Binding) types.Set {
	elements := make([]attr.Value, len(bindings))
	for i, b := range bindings {
		elements[i] = types.ObjectValueMust(bindingType.AttrTypes, map[string]attr.Value{
			"exchange": types.StringValue(b.Source), "routing_key": types.StringValue(b.RoutingKey),
		})
	}
	return types.SetValueMust(bindingType, elements)
}

func exchangeNames(exchanges []topology.Exchange) []string {
	names := make([]string, len(exchanges))
	for i, e := range exchanges {
		names[i] = e.Name
	}
	return names
}

// sentence writes an error as the detail of a diagnostic.
func sentence(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	word, _, _ := strings.Cut(text, " ")
	if unicode.IsLower(first) && !strings.ContainsAny(word, "._") && !strings.HasPrefix(word, "x-") { // an attribute or argument stays what it is
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".!?}") {
		text += "."
	}
	return text
}

// attributeForm is how a rule's error begins that is about one attribute: with its name, which says where it is.
var attributeForm = regexp.MustCompile(`^([a-z]+(?:_[a-z]+)*)(?:\.([a-z_]+))?:?$`)

// attributeOf is the attribute that an error begins with. One word alone may be any word, and is none.
func attributeOf(err error) (path.Path, bool) {
	word, _, _ := strings.Cut(err.Error(), " ")
	parts := attributeForm.FindStringSubmatch(word)
	if parts == nil || !strings.ContainsAny(word, "._") {
		return path.Empty(), false
	}
	at := path.Root(parts[1])
	if parts[2] != "" {
		at = at.AtName(parts[2])
	}
	return at, true
}

// addError adds an error of doing something to an object, at the attribute that it begins with.
func addError(diags *diag.Diagnostics, summary string, err error) {
	if err == nil {
		return
	}
	detail := sentence(err) + whichAttribute(err)
	if at, ok := attributeOf(err); ok {
		diags.AddAttributeError(at, summary, detail)
	} else {
		diags.AddError(summary, detail)
	}
}
