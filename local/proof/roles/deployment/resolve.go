package deployment

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// resolver replaces the references of a template by names and ARNs of the fakes.
type resolver struct {
	t template.Template
	// err joins an error for each unknown reference.
	err error
}

// reference matches a reference in the form of template.Flat.
var reference = regexp.MustCompile(`\$\{(\w+)(\.\w+)?\}`)

// pseudo has the values of CloudFormation's pseudo parameters.
var pseudo = map[string]string{"Partition": "aws", "Region": awsfake.Region, "AccountId": awsfake.Account, "URLSuffix": "amazonaws.com"}

// suffix matches the hash that the CDK appends to an id.
var suffix = regexp.MustCompile(`[0-9A-F]{8}$`)

func (r *resolver) resolve(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		if value, ok := pseudo[parts[1]]; ok {
			return value
		}
		of := r.t.Resources[parts[1]]
		if of == nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s: no such resource", found))
			return found
		}
		name := suffix.ReplaceAllString(of.ID, "")
		for _, property := range []string{"QueueName", "Name", "RoleName"} {
			if given := of.Text(property); given != "" {
				name = r.resolve(given)
			}
		}
		value, ok := valueOf(strings.TrimPrefix(of.Type, "AWS::")+parts[2], name)
		if !ok {
			r.err = errors.Join(r.err, fmt.Errorf("%s: unknown attribute of a %s", found, of.Type))
		}
		return value
	})
}

// valueOf returns the value of a Ref or an attribute of the resource name. what is the type of
// the resource, with the attribute.
func valueOf(what, name string) (value string, ok bool) {
	arn := func(service, resource string) string {
		return "arn:aws:" + service + ":" + awsfake.Region + ":" + awsfake.Account + ":" + resource + name
	}
	values := map[string]string{
		"DynamoDB::Table": name, "DynamoDB::Table.Arn": arn("dynamodb", "table/"), "DynamoDB::Table.StreamArn": arn("dynamodb", "table/") + "/stream/2026-01-02T03:04:05.000",
		"SQS::Queue": "https://sqs." + awsfake.Region + ".amazonaws.com/" + awsfake.Account + "/" + name, "SQS::Queue.Arn": arn("sqs", ""),
		"Events::EventBus": name, "Events::EventBus.Arn": arn("events", "event-bus/"),
		"KMS::Key.Arn": arn("kms", "key/"), "Logs::LogGroup.Arn": arn("logs", "log-group:") + ":*", "IAM::Role.Arn": "arn:aws:iam::" + awsfake.Account + ":role/" + name,
		"SecretsManager::Secret": awsfake.SecretARN(name), "Scheduler::ScheduleGroup": name, "ApiGateway::RestApi": name, "ApiGatewayV2::Api": name,
		"S3::Bucket": strings.ToLower(name), "S3::Bucket.Arn": "arn:aws:s3:::" + strings.ToLower(name),
	}
	value, ok = values[what]
	return value, ok
}

// role returns the statements of a function's role.
func (r *resolver) role(f *template.Resource) (awsfake.Role, error) {
	id, _, _ := strings.Cut(strings.Trim(f.Text("Role"), "${}"), ".")
	made := r.t.Resources[id]
	if made == nil || made.At("ManagedPolicyArns") != nil || made.At("PermissionsBoundary") != nil {
		return nil, fmt.Errorf("role %q: want a role of the template with inline policies alone", id)
	}
	for _, kind := range []string{"IAM::Policy", "IAM::ManagedPolicy", "IAM::RolePolicy"} {
		for _, p := range r.t.Of(kind) {
			if strings.Contains(p.Text("Roles")+p.Text("RoleName"), id) {
				return nil, fmt.Errorf("role %q: policy %s is not inline", id, p.ID)
			}
		}
	}
	var role awsfake.Role
	for _, policy := range list(made.At("Policies")) {
		for _, s := range list(object(object(policy)["PolicyDocument"])["Statement"]) {
			statement, err := r.statement(object(s))
			if err != nil {
				return nil, fmt.Errorf("role %q: %w", id, err)
			}
			role = append(role, statement)
		}
	}
	return role, nil
}

func (r *resolver) statement(given map[string]any) (awsfake.Statement, error) {
	s := awsfake.Statement{}
	for part, value := range given {
		switch part {
		case "Effect":
			s.Effect = template.Flat(value)
		case "Action":
			s.Actions = r.texts(value)
		case "Resource":
			s.Resources = r.texts(value)
		case "Condition":
			s.Conditions = map[string]map[string][]string{}
			for operator, keys := range object(value) {
				s.Conditions[operator] = map[string][]string{}
				for key, values := range object(keys) {
					s.Conditions[operator][key] = r.texts(values)
				}
			}
		default:
			return s, fmt.Errorf("a statement has %s, want Effect, Action, Resource and Condition alone", part)
		}
	}
	return s, nil
}

func (r *resolver) texts(value any) []string {
	var all []string
	for _, each := range list(value) {
		all = append(all, r.resolve(template.Flat(each)))
	}
	return all
}

// list returns a value as a list: a single value as its only element, nil as an empty one.
func list(value any) []any {
	if value == nil {
		return nil
	}
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}
