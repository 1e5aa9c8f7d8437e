package topology

import (
	"fmt"
	"strings"
	"testing"
)

// statement is a policy document of one statement.
func statement(elements string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` + elements + `}]}`
}

const anyone = `"Principal":"*","Action":"sqs:SendMessage","Resource":"*"`

func TestCanonicalPolicyEqual(t *testing.T) {
	t.Parallel()
	two := func(a, b string) string {
		return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[%s,%s]}`, a, b)
	}
	one := func(sid string) string { return `{"Sid":"` + sid + `","Effect":"Allow",` + anyone + `}` }
	for name, pair := range map[string][2]string{
		"nothing":           {"", " \n"},
		"white space":       {statement(anyone), strings.ReplaceAll(statement(anyone), ",", " ,\n")},
		"order of keys":     {statement(anyone), statement(`"Resource":"*","Action":"sqs:SendMessage","Principal":"*"`)},
		"one statement":     {statement(anyone), `{"Version":"2012-10-17","Statement":{"Effect":"Allow",` + anyone + `}}`},
		"one action":        {statement(anyone), statement(`"Principal":"*","Action":["sqs:SendMessage"],"Resource":"*"`)},
		"one resource":      {statement(anyone), statement(`"Principal":"*","Action":"sqs:SendMessage","Resource":["*"]`)},
		"anybody":           {statement(anyone), statement(`"Principal":{"AWS":"*"},"Action":"sqs:SendMessage","Resource":"*"`)},
		"anybody, listed":   {statement(anyone), statement(`"Principal":{"AWS":["*"]},"Action":"sqs:SendMessage","Resource":"*"`)},
		"case of an action": {statement(anyone), statement(`"Principal":"*","Action":"SQS:sendmessage","Resource":"*"`)},
		"repeated":          {statement(anyone), statement(`"Principal":"*","Action":["sqs:SendMessage","SQS:SendMessage"],"Resource":"*"`)},
		"order of actions": {
			statement(`"Principal":"*","Action":["sqs:DeleteMessage","sqs:Receive*"],"Resource":"*"`),
			statement(`"Principal":"*","Action":["SQS:RECEIVE*","sqs:DeleteMessage"],"Resource":"*"`),
		},
		"an account": {
			statement(`"Principal":{"AWS":"123456789012"},"Action":"sqs:SendMessage","Resource":"*"`),
			statement(`"Principal":{"AWS":["arn:aws:iam::123456789012:root"]},"Action":"sqs:SendMessage","Resource":"*"`),
		},
		"an account in China": {
			statement(`"Principal":{"AWS":"123456789012"},"Action":"sqs:SendMessage","Resource":"*"`),
			statement(`"Principal":{"AWS":["arn:aws-cn:iam::123456789012:root"]},"Action":"sqs:SendMessage","Resource":"*"`),
		},
		"order of principals": {
			statement(`"Principal":{"AWS":["111111111111","222222222222"],"Service":["sns.amazonaws.com"]},"Action":"*","Resource":"*"`),
			statement(`"Principal":{"Service":"sns.amazonaws.com","AWS":["arn:aws:iam::222222222222:root","111111111111"]},"Action":"*","Resource":"*"`),
		},
		"not a principal":     {statement(`"NotPrincipal":"*","NotAction":"sqs:*","NotResource":"a"`), statement(`"NotPrincipal":{"AWS":"*"},"NotAction":["SQS:*"],"NotResource":["a"]`)},
		"version":             {`{"Version":"2008-10-17","Statement":{"Effect":"Allow",` + anyone + `}}`, `{"Statement":{"Effect":"Allow",` + anyone + `}}`},
		"no id":               {`{"Id":"","Statement":{"Effect":"Allow",` + anyone + `}}`, `{"Statement":{"Effect":"Allow",` + anyone + `}}`},
		"no statement id":     {statement(anyone), statement(`"Sid":"",` + anyone)},
		"order of statements": {two(one("a"), one("b")), two(one("b"), one("a"))},
		"twice the same":      {two(one("a"), one("a")), `{"Version":"2012-10-17","Statement":` + one("a") + `}`},
		"condition": {
			statement(anyone + `,"Condition":{"ArnEquals":{"aws:SourceArn":"a"},"Bool":{"aws:SecureTransport":true},"NumericLessThan":{"k":5}}`),
			statement(anyone + `,"Condition":{"Bool":{"AWS:securetransport":["true"]},"ArnEquals":{"AWS:SourceArn":["a","a"]},"NumericLessThan":{"k":"5"}}`),
		},
	} {
		a, errA := CanonicalPolicy(pair[0])
		b, errB := CanonicalPolicy(pair[1])
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s:\n%s\n%s\n%v, %v", name, a, b, errA, errB)
		}
		if again, err := CanonicalPolicy(a); err != nil || again != a {
			t.Errorf("%s: %s becomes %s, %v", name, a, again, err)
		}
	}
}

func TestCanonicalPolicyDiffers(t *testing.T) {
	t.Parallel()
	base, err := CanonicalPolicy(statement(anyone))
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range map[string]string{
		"none":         "",
		"effect":       strings.Replace(statement(anyone), "Allow", "Deny", 1),
		"action":       strings.Replace(statement(anyone), "SendMessage", "*", 1),
		"resource":     strings.Replace(statement(anyone), `"Resource":"*"`, `"Resource":"arn:aws:sqs:eu-central-1:123456789012:Orders"`, 1),
		"not":          strings.Replace(statement(anyone), `"Resource"`, `"NotResource"`, 1),
		"version":      strings.Replace(statement(anyone), "2012-10-17", "2008-10-17", 1),
		"statement id": statement(`"Sid":"a",` + anyone),
		"principal":    strings.Replace(statement(anyone), `"Principal":"*"`, `"Principal":{"AWS":"123456789012"}`, 1),
		"a service":    strings.Replace(statement(anyone), `"Principal":"*"`, `"Principal":{"Service":"*"}`, 1),
		"condition":    statement(anyone + `,"Condition":{"Bool":{"aws:SecureTransport":true}}`),
	} {
		if got, err := CanonicalPolicy(document); err != nil || got == base {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	upper, _ := CanonicalPolicy(statement(anyone + `,"Condition":{"StringEquals":{"k":"A"}}`))
	lower, _ := CanonicalPolicy(statement(anyone + `,"Condition":{"StringEquals":{"k":"a"}}`))
	if upper == lower {
		t.Error("the values of a condition are compared without their case")
	}
}

func TestCanonicalPolicyRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		document   string
		essentials []string
	}{
		"no JSON":            {"{", []string{"not JSON", "ends too early"}},
		"twice":              {`{"Statement":[],"Statement":[]}`, []string{`"Statement" is there twice`}},
		"a list":             {`[]`, []string{"a list and not an object"}},
		"no statement":       {`{"Version":"2012-10-17"}`, []string{"no Statement"}},
		"empty":              {`{"Statement":[]}`, []string{"no Statement", "leave the policy out"}},
		"a statement":        {`{"Statement":["a"]}`, []string{"statement 1 is a string"}},
		"no effect":          {`{"Statement":{"Action":"*"}}`, []string{"statement 1", "effect null", `"Allow" or "Deny"`}},
		"effect":             {`{"Statement":{"Effect":"allow"}}`, []string{`effect "allow"`}},
		"action":             {statement(`"Action":5`), []string{"Action", "a number"}},
		"resource":           {statement(`"Resource":[null]`), []string{"Resource", "null"}},
		"principal":          {statement(`"Principal":"me"`), []string{"Principal", "a string", `"*"`}},
		"principal, inside":  {statement(`"Principal":{"AWS":{}}`), []string{"Principal: AWS", "an object"}},
		"condition":          {statement(`"Condition":[]`), []string{"Condition", "a list"}},
		"condition, inside":  {statement(`"Condition":{"Bool":true}`), []string{"Condition: Bool", "a boolean"}},
		"condition, values":  {statement(`"Condition":{"Bool":{"k":{}}}`), []string{"Bool: k", "an object"}},
		"condition, letters": {statement(`"Condition":{"Bool":{"k":1,"K":2}}`), []string{`"k" is there twice`}},
		"too deep":           {strings.Repeat("[", 200), []string{"nests deeper"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := CanonicalPolicy(tc.document)
			refused(t, err, append(tc.essentials, "policy")...)
		})
	}
}
