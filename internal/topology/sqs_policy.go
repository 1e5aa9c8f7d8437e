package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// policyVersion is the version of a policy document that states none.
const policyVersion = "2008-10-17"

// CanonicalPolicy writes an access policy in one form: documents that mean the same give the same text. AWS keeps a policy
// as another text than it was given, so that texts cannot be compared. A single value is a list of one, lists are sorted and
// without repetitions, statements too; actions and condition keys are case-insensitive; an account's root is its id; a
// principal of "*" is anybody; a condition's values are texts. Statement ids are kept. No document, "", is none.
func CanonicalPolicy(document string) (string, error) {
	if strings.TrimSpace(document) == "" {
		return "", nil
	}
	value, err := decodeStrict([]byte(document))
	if err != nil {
		return "", fmt.Errorf("policy: it is not JSON: %w", err)
	}
	policy, ok := value.(map[string]any)
	if !ok {
		return "", fmt.Errorf("policy: it is %s and not an object with a Statement", kindOf(value))
	}
	if policy["Version"] == nil {
		policy["Version"] = policyVersion
	}
	if policy["Id"] == "" {
		delete(policy, "Id")
	}
	statements, ok := policy["Statement"].([]any)
	if !ok {
		statements = []any{policy["Statement"]}
	}
	if policy["Statement"] == nil || len(statements) == 0 {
		return "", errors.New("policy: it has no Statement; leave the policy out where nothing is to be allowed or denied")
	}
	list := make([]any, len(statements))
	for i, s := range statements {
		statement, ok := s.(map[string]any)
		if !ok {
			return "", fmt.Errorf("policy: statement %d is %s and not an object", i+1, kindOf(s))
		}
		if list[i], err = canonicalStatement(statement); err != nil {
			return "", fmt.Errorf("policy: statement %d: %w", i+1, err)
		}
	}
	policy["Statement"] = sortedSet(list)
	return canonicalValue(policy), nil
}

func canonicalStatement(statement map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(statement)) {
		value, err := canonicalElement(key, statement[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if key != "Sid" || value != "" {
			out[key] = value
		}
	}
	if effect := out["Effect"]; effect != "Allow" && effect != "Deny" {
		return nil, fmt.Errorf("effect %s: use \"Allow\" or \"Deny\"", canonicalValue(effect))
	}
	return out, nil
}

// canonicalElement is one element of a statement in one form. Elements of other names are left as they are: AWS judges them.
func canonicalElement(key string, value any) (any, error) {
	switch key {
	case "Action", "NotAction":
		return textSet(value, canonicalAction)
	case "Resource", "NotResource":
		return textSet(value, same)
	case "Principal", "NotPrincipal":
		return canonicalPrincipal(value)
	case "Condition":
		return canonicalCondition(value)
	default:
		return value, nil
	}
}

func same(text string) string { return text }

// textSet is a text or a list of texts as a sorted list.
func textSet(value any, canonical func(string) string) (any, error) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := make([]any, len(list))
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			return nil, fmt.Errorf("it holds %s and must be a text or a list of texts", kindOf(element))
		}
		out[i] = canonical(text)
	}
	return sortedSet(out), nil
}

// sqsActions are all actions of SQS, as SQS writes them.
var sqsActions = []string{
	ActionReceive, ActionDelete, ActionChangeVisibility, ActionSend, ActionGetAttributes, ActionSetAttributes, ActionGetURL, ActionCreate, ActionDeleteQueue,
	ActionPurge, ActionListQueues, ActionListSources, ActionListTags, ActionTag, ActionUntag, ActionStartMove, ActionCancelMove, ActionListMoves,
	"sqs:AddPermission", "sqs:RemovePermission",
}

// canonicalAction writes an action as SQS does, whatever its case; others in lower case.
func canonicalAction(action string) string {
	for _, known := range sqsActions {
		if strings.EqualFold(known, action) {
			return known
		}
	}
	return strings.ToLower(action)
}

// accountRoot is the ARN that stands for an account, whose id means the same.
var accountRoot = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):root$`)

func canonicalPrincipal(value any) (any, error) {
	if value == "*" {
		return map[string]any{"AWS": []any{"*"}}, nil
	}
	principals, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s and must be an object, or \"*\" for anybody", kindOf(value))
	}
	out := map[string]any{}
	for _, kind := range slices.Sorted(maps.Keys(principals)) {
		list, err := textSet(principals[kind], func(principal string) string {
			if kind != "AWS" {
				return principal
			}
			return accountRoot.ReplaceAllString(principal, "$1")
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		out[kind] = list
	}
	return out, nil
}

func canonicalCondition(value any) (any, error) {
	operators, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s and must be an object of operators", kindOf(value))
	}
	out := map[string]any{}
	for _, operator := range slices.Sorted(maps.Keys(operators)) {
		keys, ok := operators[operator].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: it is %s and must be an object of keys", operator, kindOf(operators[operator]))
		}
		lower := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if _, twice := lower[strings.ToLower(key)]; twice {
				return nil, fmt.Errorf("%s: the key %q is there twice, in other letters", operator, key)
			}
			values, err := conditionValues(keys[key])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", operator, key, err)
			}
			lower[strings.ToLower(key)] = values
		}
		out[operator] = lower
	}
	return out, nil
}

// conditionValues are the values of a condition's key, texts all of them: AWS compares them as such.
func conditionValues(value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := make([]any, len(list))
	for i, element := range list {
		switch v := element.(type) {
		case string:
			out[i] = v
		case bool:
			out[i] = strconv.FormatBool(v)
		case json.Number:
			out[i] = v.String()
		default:
			return nil, fmt.Errorf("it holds %s and must be a text, a number, a boolean or a list of them", kindOf(element))
		}
	}
	return sortedSet(out), nil
}
