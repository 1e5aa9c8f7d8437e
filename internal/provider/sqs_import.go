package provider

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

var (
	arnPart        = identityPart{"arn", "The queue's ARN."}
	sqsTopicForm   = identityForm{segments: []identityPart{arnPart}, params: inTopic}
	sqsDeadEndForm = identityForm{segments: []identityPart{arnPart}, params: []identityPart{inTopic[0], inTopic[1], {"topic", "The topic's name, where the queue's is not the one that the convention derives from it."}}}
)

func (*sqsTopicResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = sqsTopicForm.schema()
}

func (*sqsDeadEndResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = sqsDeadEndForm.schema()
}

// sqsID is the import id of a queue: its ARN and parameters. Nothing in an ARN has to be encoded.
func sqsID(arn types.String, params map[string]string) string {
	return strings.ReplaceAll(importID{segments: []string{arn.ValueString()}, params: params}.String(), "%3A", ":")
}

// sqsImport is an import id, read.
type sqsImport struct {
	queue string
	// region and account are "" where the id does not say them.
	region, account string
	params          map[string]string
}

// parseSQSImport reads what names a queue, its name, its URL or its ARN, with the given parameters behind it.
func parseSQSImport(text string, params ...string) (sqsImport, error) {
	fail := func(why string) (sqsImport, error) {
		return sqsImport{}, fmt.Errorf("import id %q: %s; write the queue's name, URL or ARN, and where they are needed the parameters ?%s behind it", text, why, strings.Join(params, "=...&")+"=...")
	}
	head, query, _ := strings.Cut(text, "?")
	if decoded, err := url.PathUnescape(head); err == nil {
		head = decoded
	}
	id := sqsImport{queue: head, params: map[string]string{}}
	switch {
	case strings.HasPrefix(head, "arn:"):
		where, queue, err := topology.ParseSQSARN(head)
		if err != nil {
			return fail(err.Error())
		}
		id.queue, id.region, id.account = queue, where.Region, where.Account
	case strings.Contains(head, "://"):
		u, err := url.Parse(head)
		if err != nil {
			return fail("it is not a URL")
		}
		parts := strings.Split(strings.Trim(u.Path, "/"), "/")
		if len(parts) < 2 {
			return fail("its path does not end in an account and a queue")
		}
		id.account, id.queue = parts[len(parts)-2], parts[len(parts)-1]
		if host := strings.Split(u.Hostname(), "."); len(host) > 2 && host[0] == "sqs" {
			id.region = host[1]
		}
	}
	if id.queue == "" {
		return fail("it names no queue")
	}
	for _, pair := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(value)
		switch {
		case pair == "":
		case !slices.Contains(params, key):
			return fail(fmt.Sprintf("parameter %q is not known", key))
		case err != nil:
			return fail(err.Error())
		default:
			id.params[key] = decoded
		}
	}
	return id, nil
}

// importSQS reads an import id into the attributes of the identity, and says whose topic's the queue is.
func (m *sqsPartModel) importSQS(ctx context.Context, rt *runtime, text string, role topology.Role) (topic types.String, err error) {
	params := []string{"convention", "consumer_group"}
	if role != topology.RoleWork {
		params = append(params, "topic")
	}
	id, err := parseSQSImport(text, params...)
	if err != nil {
		return topic, err
	}
	convention, err := topology.ParseConvention(id.params["convention"])
	if err != nil {
		return topic, err
	}
	place, err := rt.sqsPlace(ctx)
	if err != nil {
		return topic, err
	}
	if id.region != "" && id.region != place.where.Region || id.account != "" && id.account != place.where.Account {
		return topic, fmt.Errorf("import id %q names a queue that is elsewhere: the provider works on region %s of account %s; use a provider for that place (provider = redeliver.ALIAS)",
			text, place.where.Region, place.where.Account)
	}
	arn := place.where.ARN(id.queue)
	where, _, err := topology.ParseSQSARN(arn)
	if err != nil {
		return topic, err
	}
	group := id.params["consumer_group"]
	name, is, _, ok := topology.SQSTopicOf(convention, group, id.queue)
	switch given := id.params["topic"]; {
	case given != "":
		name = given
	case ok && is == role:
	case ok && is != topology.RoleWork:
		return topic, fmt.Errorf("queue %q is by its name the %s of topic %q: import it as that", id.queue, (&sqsDeadEndResource{role: is}).typeName(), name)
	case role == topology.RoleWork:
		return topic, fmt.Errorf("queue %q cannot be the work queue of a topic under the %s convention", id.queue, convention)
	default:
		return topic, fmt.Errorf("queue %q has no name that the %s convention derives from a topic; say whose it is: %s?topic=TOPIC", id.queue, convention, id.queue)
	}
	identity := topology.SQSIdentity{Topic: name, Convention: convention, ConsumerGroup: group, FIFO: where.FIFO}
	if err := identity.Validate(role); err != nil {
		return topic, err
	}
	m.Convention, m.FIFO, m.ConsumerGroup, m.ARN = types.StringValue(string(convention)), types.BoolValue(where.FIFO), optionalText(group), types.StringValue(arn)
	return types.StringValue(name), nil
}
