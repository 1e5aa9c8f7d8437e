package topology

import (
	"strings"
	"testing"
)

func TestSQSNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id                 SQSIdentity
		work, dead, parked string
	}{
		"standard":      {SQSIdentity{Topic: "orders"}, "orders", "orders-dlq", "orders-parked"},
		"fifo":          {SQSIdentity{Topic: "orders", FIFO: true}, "orders.fifo", "orders-dlq.fifo", "orders-parked.fifo"},
		"shove":         {SQSIdentity{Topic: "orders", Convention: Shove}, "orders", "orders-dlq", ""},
		"shove, group":  {SQSIdentity{Topic: "orders", Convention: Shove, ConsumerGroup: "eu", FIFO: true}, "orders.fifo", "orders-eu-dlq.fifo", ""},
		"longest":       {SQSIdentity{Topic: strings.Repeat("x", 73)}, strings.Repeat("x", 73), strings.Repeat("x", 73) + "-dlq", strings.Repeat("x", 73) + "-parked"},
		"every charset": {SQSIdentity{Topic: "aZ09_-"}, "aZ09_-", "aZ09_--dlq", "aZ09_--parked"},
	} {
		if err := tc.id.Validate(RoleWork); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if work, dead, parked := tc.id.WorkQueueName(), tc.id.DeadLetterQueueName(), tc.id.ParkedQueueName(); work != tc.work || dead != tc.dead || parked != tc.parked {
			t.Errorf("%s: %q, %q, %q", name, work, dead, parked)
		}
	}
}

func TestSQSNamesRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id         SQSIdentity
		role       Role
		essentials []string
	}{
		"empty":            {SQSIdentity{}, RoleWork, []string{"topic", "empty"}},
		"suffix":           {SQSIdentity{Topic: "orders.fifo"}, RoleWork, []string{`"orders.fifo"`, "fifo = true", `call the topic "orders"`}},
		"dot":              {SQSIdentity{Topic: "shop.orders"}, RoleWork, []string{`"shop.orders"`, `a "."`, "replace it"}},
		"not ASCII":        {SQSIdentity{Topic: "bestellung-ü"}, RoleWork, []string{`a "ü"`}},
		"acemq":            {SQSIdentity{Topic: "orders", Convention: AceMQ}, RoleWork, []string{`"acemq"`, `"orders.dlq"`, "no dots", `"redeliver", "shove"`}},
		"rabbitkit":        {SQSIdentity{Topic: "orders", Convention: RabbitKit}, RoleWork, []string{`"rabbitkit"`, `"redeliver", "shove"`}},
		"queuey":           {SQSIdentity{Topic: "orders", Convention: Queuey}, RoleWork, []string{`"queuey"`, `"orders.dead"`}},
		"unknown":          {SQSIdentity{Topic: "orders", Convention: "nope"}, RoleWork, []string{`"nope" is not known`}},
		"derived":          {SQSIdentity{Topic: "orders-dlq"}, RoleWork, []string{`"-dlq"`, `"orders"`}},
		"derived, fifo":    {SQSIdentity{Topic: "orders-parked", FIFO: true}, RoleWork, []string{`"-parked"`}},
		"migrating":        {SQSIdentity{Topic: "orders-migrating"}, RoleWork, []string{`"-migrating"`}},
		"hold":             {SQSIdentity{Topic: "orders-hold-5s", Convention: Shove}, RoleWork, []string{`"-hold-5s"`}},
		"no groups":        {SQSIdentity{Topic: "orders", ConsumerGroup: "eu"}, RoleWork, []string{"has no consumer groups"}},
		"group":            {SQSIdentity{Topic: "orders", Convention: Shove, ConsumerGroup: "e.u"}, RoleWork, []string{"consumer group", `a "."`}},
		"group, derived":   {SQSIdentity{Topic: "orders", Convention: Shove, ConsumerGroup: "dlq"}, RoleWork, []string{`consumer group "dlq"`}},
		"no parked":        {SQSIdentity{Topic: "orders", Convention: Shove}, RoleParked, []string{"parked queue", "shove"}},
		"too long":         {SQSIdentity{Topic: strings.Repeat("x", 74)}, RoleWork, []string{"-parked", "81 characters", "allows 80", "by 1"}},
		"too long, suffix": {SQSIdentity{Topic: strings.Repeat("x", 69), FIFO: true}, RoleWork, []string{"-parked.fifo", "81 characters", "by 1"}},
		"account":          {SQSIdentity{Topic: "orders", Account: "123"}, RoleWork, []string{`"123"`, "12 digits"}},
		"region":           {SQSIdentity{Topic: "orders", Region: "EU Central"}, RoleWork, []string{`"EU Central"`}},
		"partition":        {SQSIdentity{Topic: "orders", Partition: "a:b"}, RoleWork, []string{`"a:b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tc.id.Validate(tc.role), tc.essentials...)
		})
	}
}

func TestSQSTopicOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		convention   Convention
		group, queue string
		topic        string
		role         Role
		fifo, ok     bool
	}{
		"work":              {Redeliver, "", "orders", "orders", RoleWork, false, true},
		"work, fifo":        {Redeliver, "", "orders.fifo", "orders", RoleWork, true, true},
		"dead":              {Redeliver, "", "orders-dlq", "orders", RoleDeadLetter, false, true},
		"dead, fifo":        {Redeliver, "", "orders-dlq.fifo", "orders", RoleDeadLetter, true, true},
		"parked":            {"", "", "orders-parked", "orders", RoleParked, false, true},
		"shove, group":      {Shove, "eu", "orders-eu-dlq", "orders", RoleDeadLetter, false, true},
		"shove, no group":   {Shove, "", "orders-eu-dlq", "orders-eu", RoleDeadLetter, false, true},
		"shove parks not":   {Shove, "", "orders-parked", "orders-parked", RoleWork, false, true},
		"no queue on SQS":   {Redeliver, "", "orders-hold-5s", "", "", false, false},
		"no name":           {Redeliver, "", "a.b", "", "", false, false},
		"another's group":   {Shove, "eu", "orders-us-dlq", "", "", false, false},
		"no suffix in it":   {Redeliver, "", "orders.fifo-dlq", "", "", false, false},
		"nothing":           {Redeliver, "", "", "", "", false, false},
		"dots in it, acemq": {AceMQ, "", "orders.dlq", "", "", false, false},
	} {
		topic, role, fifo, ok := SQSTopicOf(tc.convention, tc.group, tc.queue)
		if topic != tc.topic || role != tc.role || fifo != tc.fifo || ok != tc.ok {
			t.Errorf("%s: %q, %q, %t, %t", name, topic, role, fifo, ok)
		}
	}
}

func TestSQSForeignDeadEnd(t *testing.T) {
	t.Parallel()
	id := SQSIdentity{Topic: "orders", FIFO: true}
	for name, want := range map[string]string{"orders-dlq.fifo": "", "invoices-dlq.fifo": "invoices", "failures.fifo": "", "": ""} {
		if got := id.ForeignDeadEnd(name); got != want {
			t.Errorf("%q looks like that of %q, want %q", name, got, want)
		}
	}
}

func TestSQSARNsAndURLs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id       SQSIdentity
		endpoint string
		arn, url string
	}{
		"aws":       {id: sqsHere, arn: "arn:aws:sqs:eu-central-1:123456789012:orders", url: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"},
		"china":     {id: SQSIdentity{Region: "cn-north-1", Account: "123456789012"}, arn: "arn:aws-cn:sqs:cn-north-1:123456789012:orders", url: "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders"},
		"gov":       {id: SQSIdentity{Region: "us-gov-west-1", Account: "123456789012"}, arn: "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders", url: "https://sqs.us-gov-west-1.amazonaws.com/123456789012/orders"},
		"iso":       {id: SQSIdentity{Region: "us-isob-east-1", Account: "123456789012"}, arn: "arn:aws-iso-b:sqs:us-isob-east-1:123456789012:orders", url: "https://sqs.us-isob-east-1.sc2s.sgov.gov/123456789012/orders"},
		"named":     {id: SQSIdentity{Region: "local", Account: "123456789012", Partition: "aws-cn"}, arn: "arn:aws-cn:sqs:local:123456789012:orders", url: "https://sqs.local.amazonaws.com.cn/123456789012/orders"},
		"of nobody": {id: SQSIdentity{Region: "local", Account: "123456789012", Partition: "aws-x"}, arn: "arn:aws-x:sqs:local:123456789012:orders", url: "https://sqs.local.amazonaws.com/123456789012/orders"},
		"endpoint":  {id: sqsHere, endpoint: "http://127.0.0.1:15432/", arn: "arn:aws:sqs:eu-central-1:123456789012:orders", url: "http://127.0.0.1:15432/123456789012/orders"},
		"no region": {id: SQSIdentity{Account: "123456789012"}, endpoint: "http://127.0.0.1"},
		"nobody's":  {id: SQSIdentity{Region: "eu-central-1"}, endpoint: "http://127.0.0.1"},
	} {
		if arn, url := tc.id.ARN("orders"), tc.id.URL("orders", tc.endpoint); arn != tc.arn || url != tc.url {
			t.Errorf("%s: %s, %s", name, arn, url)
		}
		if tc.arn == "" {
			continue
		}
		where, queue, err := ParseSQSARN(tc.arn)
		if err != nil || queue != "orders" || where.ARN(queue) != tc.arn || where.Region != tc.id.Region || where.Account != tc.id.Account || where.FIFO {
			t.Errorf("%s is read as %+v, %q, %v", tc.arn, where, queue, err)
		}
	}
	if where, _, err := ParseSQSARN("arn:aws:sqs:eu-central-1:123456789012:orders.fifo"); err != nil || !where.FIFO {
		t.Errorf("a FIFO queue's ARN is read as %+v, %v", where, err)
	}
	for _, text := range []string{
		"", "orders", "arn:aws:sns:eu-central-1:123456789012:orders", "arn:aws:sqs:eu-central-1:123456789012:a:b", "arn:aws:sqs::123456789012:orders",
		"arn:aws:sqs:eu-central-1::orders", "arn::sqs:eu-central-1:123456789012:orders", "arn:aws:sqs:eu-central-1:1:orders", "arn:aws:sqs:eu-central-1:123456789012:a.b",
		"arn:aws:sqs:eu-central-1:123456789012:", "arn:aws:sqs:eu-central-1:123456789012:" + strings.Repeat("x", 81),
	} {
		if where, queue, err := ParseSQSARN(text); err == nil {
			t.Errorf("%q is read as %+v, %q", text, where, queue)
		}
	}
}

func TestSQSConventions(t *testing.T) {
	t.Parallel()
	if got := quotedList(SQSConventions()); got != `"redeliver", "shove"` {
		t.Errorf("conventions %s", got)
	}
}
