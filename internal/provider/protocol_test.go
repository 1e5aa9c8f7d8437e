package provider

import (
	"math/big"
	"net/url"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// protocol is the provider's server, called in this process as a command line would call it: for what the installed
// command line is too old to ask.
type protocol struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
	// identities are the types of the resources' identities.
	identities map[string]tftypes.Type
}

// protocol serves a provider that is configured for the test's vhost.
func (b *bundle) protocol() *protocol {
	b.t.Helper()
	return b.protocolAs(b.broker.Username(), b.broker.Password(), []any{b.amqpEndpoint()})
}

func (b *bundle) protocolAs(user, password string, amqpEndpoints any) *protocol {
	b.t.Helper()
	p := newProtocol(b.t)
	p.configure(map[string]any{"rabbitmq": map[string]any{
		"endpoints": []any{b.broker.ManagementURL()}, "amqp_endpoints": amqpEndpoints, "username": user, "password": password, "vhost": b.vhost,
	}})
	return p
}

func (p *protocol) configure(config map[string]any) {
	p.t.Helper()
	configured, err := p.server.ConfigureProvider(p.t.Context(), &tfprotov6.ConfigureProviderRequest{Config: p.value(p.schemas.Provider.ValueType(), config)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(configured.Diagnostics)
}

// newProtocol serves a provider that is not configured.
func newProtocol(t *testing.T) *protocol {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(&redeliverProvider{version: "test", getenv: func(string) string { return "" }})()
	if err != nil {
		t.Fatal(err)
	}
	p := &protocol{t: t, server: server, identities: map[string]tftypes.Type{}}
	if p.schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	p.noErrors(p.schemas.Diagnostics)
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p.noErrors(identities.Diagnostics)
	for name, schema := range identities.IdentitySchemas {
		p.identities[name] = schema.ValueType()
	}
	return p
}

func (p *protocol) noErrors(diagnostics []*tfprotov6.Diagnostic) {
	p.t.Helper()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			p.t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

// fails expects an error that says all of the texts.
func (p *protocol) fails(diagnostics []*tfprotov6.Diagnostic, texts ...string) {
	p.t.Helper()
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			expect(p.t, d.Summary+": "+d.Detail, texts...)
			return
		}
	}
	p.t.Fatalf("no error, want %q", texts)
}

// value encodes given as a value of the type; attributes that are left out are null.
func (p *protocol) value(of tftypes.Type, given any) *tfprotov6.DynamicValue {
	p.t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(of, p.typed(of, given))
	if err != nil {
		p.t.Fatal(err)
	}
	return &encoded
}

func (p *protocol) typed(of tftypes.Type, given any) tftypes.Value {
	p.t.Helper()
	if given == nil {
		return tftypes.NewValue(of, nil)
	}
	switch kind := of.(type) {
	case tftypes.Object:
		fields := map[string]tftypes.Value{}
		for name, field := range kind.AttributeTypes {
			fields[name] = p.typed(field, given.(map[string]any)[name])
		}
		return tftypes.NewValue(of, fields)
	case tftypes.List:
		var elements []tftypes.Value
		for _, element := range given.([]any) {
			elements = append(elements, p.typed(kind.ElementType, element))
		}
		return tftypes.NewValue(of, elements)
	default:
		return tftypes.NewValue(of, given)
	}
}

// decoded is a value as plain maps, lists and texts.
func (p *protocol) decoded(of tftypes.Type, value *tfprotov6.DynamicValue) any {
	p.t.Helper()
	typed, err := value.Unmarshal(of)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.plain(typed)
}

func (p *protocol) plain(value tftypes.Value) any {
	p.t.Helper()
	if value.IsNull() || !value.IsKnown() {
		return nil
	}
	var into any
	var err error
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		var text string
		err = value.As(&text)
		into = text
	case kind.Is(tftypes.Bool):
		var flag bool
		err = value.As(&flag)
		into = flag
	case kind.Is(tftypes.Number):
		var number big.Float
		err = value.As(&number)
		n, _ := number.Float64()
		into = n
	case kind.Is(tftypes.Object{}), kind.Is(tftypes.Map{}):
		fields, plain := map[string]tftypes.Value{}, map[string]any{}
		err = value.As(&fields)
		for name, field := range fields {
			plain[name] = p.plain(field)
		}
		into = plain
	default:
		var elements []tftypes.Value
		err = value.As(&elements)
		plain := make([]any, len(elements))
		for i, element := range elements {
			plain[i] = p.plain(element)
		}
		into = plain
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return into
}

func (p *protocol) resourceType(name string) tftypes.Type {
	p.t.Helper()
	schema := p.schemas.ResourceSchemas[name]
	if schema == nil {
		p.t.Fatalf("there is no resource %q", name)
	}
	return schema.ValueType()
}

// identity is an identity as plain texts.
func (p *protocol) identity(name string, data *tfprotov6.ResourceIdentityData) map[string]any {
	p.t.Helper()
	if data == nil {
		p.t.Fatalf("%s has no identity", name)
	}
	fields, _ := p.decoded(p.identities[name], data.IdentityData).(map[string]any)
	return fields
}

// imported is what an import and the read that follows it give.
type imported struct {
	state, identity map[string]any
	raw             *tfprotov6.DynamicValue
	rawIdentity     *tfprotov6.ResourceIdentityData
}

// importResource imports by an id or, where that is empty, by an identity, and reads.
func (p *protocol) importResource(name, id string, identity map[string]any) imported {
	p.t.Helper()
	req := &tfprotov6.ImportResourceStateRequest{TypeName: name, ID: id}
	if id == "" {
		req.Identity = &tfprotov6.ResourceIdentityData{IdentityData: p.value(p.identities[name], identity)}
	}
	got, err := p.server.ImportResourceState(p.t.Context(), req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(got.Diagnostics)
	one := got.ImportedResources[0]
	return p.read(name, one.State, one.Identity, one.Private)
}

func (p *protocol) read(name string, state *tfprotov6.DynamicValue, identity *tfprotov6.ResourceIdentityData, private []byte) imported {
	p.t.Helper()
	got, err := p.server.ReadResource(p.t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: state, CurrentIdentity: identity, Private: private})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(got.Diagnostics)
	fields, _ := p.decoded(p.resourceType(name), got.NewState).(map[string]any)
	return imported{state: fields, identity: p.identity(name, got.NewIdentity), raw: got.NewState, rawIdentity: got.NewIdentity}
}

// idIn is an import id in the test's vhost.
func (b *bundle) idIn(rest string) string { return url.PathEscape(b.vhost) + "/" + rest }
