package template

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/app/setting"
)

// Plan is what a stage needs besides its own resources: secrets, apps, buckets, concurrency,
// addresses. A zero field is not needed. It does not depend on the settings of stages: only
// infra knows how they determine the template.
type Plan struct {
	// Secrets are the secrets of the stage, in the order of secrets.Kinds.
	Secrets []Secret
	// FlyApps are the apps for machines. FlyURL is the Machines API; empty means Fly's own.
	FlyApps []string
	FlyURL  string
	// Buckets is nil if the stage stores no outputs.
	Buckets *Buckets
	// Reserved is the sum of the functions' reserved concurrency. StreamReserved reports
	// whether the function of event streams has a reservation.
	Reserved       int
	StreamReserved bool
	// Readers limits a tenant's open event streams. Machines limits the concurrent machines; 0
	// means no limit.
	Readers, Machines int
	// Rate is the highest rate limit of an API method, in requests a second.
	Rate int
	// Mail receives the alarms; Topic is the name of their topic.
	Mail, Topic string
	// Domain is the API's own host name, and Certificate the ARN of its certificate.
	Domain, Certificate string
}

// Secret is a secret of the stage.
type Secret struct {
	Kind string
	// Filled is true if the stack itself stores the value.
	Filled bool
}

// Buckets are the buckets of the outputs.
type Buckets struct {
	Uploads, Accepted string
	// Endpoint overrides the endpoint in the secret.
	Endpoint string
	// Own means that the buckets belong to the stack. Their names are its outputs.
	Own bool
}

// PlanOf derives the plan from the template of the stack.
func PlanOf(t Template) Plan {
	variables := map[string]string{}
	p := Plan{}
	for _, f := range t.Of("Lambda::Function") {
		for name, value := range f.Variables() {
			variables[name] = cmp.Or(variables[name], value)
		}
		if n := number(f.Text("ReservedConcurrentExecutions")); n > 0 {
			p.Reserved += n
			p.StreamReserved = p.StreamReserved || f == t.Function("stream")
		}
	}
	p.Secrets = secretsOf(t)
	if p.Has("fly") && variables["SORTIE_FLY_APPS"] != "" {
		p.FlyApps, p.FlyURL = strings.Split(variables["SORTIE_FLY_APPS"], ","), variables["SORTIE_FLY_URL"]
	}
	if uploads := variables["SORTIE_UPLOADS_BUCKET"]; p.Has("outputs") && uploads != "" {
		p.Buckets = &Buckets{uploads, variables["SORTIE_ACCEPTED_BUCKET"], variables["SORTIE_OUTPUTS_ENDPOINT"], strings.HasPrefix(uploads, "${")}
	}
	p.Readers, p.Machines = number(variables["SORTIE_READERS"]), number(cmp.Or(variables["SORTIE_MAX_MACHINES"], defaultOf("SORTIE_MAX_MACHINES")))
	p.Rate = rateOf(t)
	for _, subscription := range t.Of("SNS::Subscription") {
		if subscription.Text("Protocol") == "email" {
			p.Mail = subscription.Text("Endpoint")
		}
	}
	for _, topic := range t.Of("SNS::Topic") {
		p.Topic = topic.Text("TopicName")
	}
	for _, domain := range t.Of("ApiGateway::DomainName") {
		p.Domain, p.Certificate = domain.Text("DomainName"), domain.Text("RegionalCertificateArn")
	}
	return p
}

// Has reports whether the stage has a secret of the kind.
func (p Plan) Has(kind string) bool {
	return slices.ContainsFunc(p.Secrets, func(s Secret) bool { return s.Kind == kind })
}

// secretsOf lists the template's secrets that have a kind.
func secretsOf(t Template) []Secret {
	var found []Secret
	for _, kind := range secrets.Kinds() {
		for _, s := range t.Of("SecretsManager::Secret") {
			if strings.HasSuffix(s.Text("Name"), "/"+kind) {
				found = append(found, Secret{kind, s.At("SecretString") != nil})
			}
		}
	}
	return found
}

// unreserved is the concurrency that Lambda reserves for functions without a reservation
// (Lambda Developer Guide, "Configuring reserved concurrency").
const unreserved = 100

// machinesEach is the number of machines per concurrent execution, with a margin: 10,000 runs
// of ten minutes needed 53 to 70 executions (infra/README.md, "Capacity").
const machinesEach = 100

// Concurrency returns the concurrent executions of Lambda that the account needs for the
// settings. It is the sum of the reservations, and of the larger of unreserved and the demand
// of functions without a reservation: the event streams of a tenant and the calls for machines.
func (p Plan) Concurrency() int {
	others := (p.Machines + machinesEach - 1) / machinesEach
	if !p.StreamReserved {
		others += p.Readers
	}
	return p.Reserved + max(unreserved, others)
}

// rateOf returns the highest rate limit of an API method.
func rateOf(t Template) int {
	most := 0
	for _, stage := range t.Of("ApiGateway::Stage") {
		settings, _ := stage.At("MethodSettings").([]any)
		for _, each := range settings {
			method, _ := each.(map[string]any)
			rate, _ := method["ThrottlingRateLimit"].(float64)
			most = max(most, int(rate))
		}
	}
	return most
}

// defaultOf returns the default of a setting of the service.
func defaultOf(name string) string {
	for _, s := range service.Settings() {
		if s.Name == name {
			return s.Default
		}
	}
	return ""
}

// number parses a number; it returns 0 for a malformed text.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
