package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// mail checks that the owner of the alarm address has confirmed the subscription.
func (e *exam) mail(ctx context.Context) []Finding {
	const check = "mail"
	if e.plan.Mail == "" {
		return nil
	}
	if f := e.undeployed(check); f != nil {
		return f
	}
	if e.present.Mail != e.plan.Mail {
		return []Finding{missing(check, "the deployed stage does not send alarms to "+e.plan.Mail, e.deploy())}
	}
	topic := strings.Join([]string{"arn", e.partition(), "sns", e.AWS.Region, e.caller.account, e.plan.Topic}, ":")
	var found struct {
		List []struct{ Endpoint, SubscriptionArn string } `xml:"ListSubscriptionsByTopicResult>Subscriptions>member"`
	}
	form := url.Values{"Action": {"ListSubscriptionsByTopic"}, "Version": {"2010-03-31"}, "TopicArn": {topic}}
	again := "aws sns subscribe --topic-arn " + topic + " --protocol email --notification-endpoint " + e.plan.Mail + " --region " + e.AWS.Region
	err := e.query(ctx, "sns", form, &found)
	switch {
	case code(err) == "NotFound" || code(err) == "NotFoundException":
		return []Finding{missing(check, "there is no topic "+e.plan.Topic, e.deploy())}
	case err != nil:
		return []Finding{e.unmade(check, "sns:ListSubscriptionsByTopic", err)}
	}
	for _, s := range found.List {
		switch {
		case s.Endpoint != e.plan.Mail:
		case s.SubscriptionArn == "PendingConfirmation":
			return []Finding{missing(check, e.plan.Mail+" has not confirmed the subscription of the alarms",
				`follow the link "Confirm subscription" in the mail of AWS Notifications; another mail is sent by `+again)}
		case strings.HasPrefix(s.SubscriptionArn, "arn:"):
			return []Finding{ok(check, "alarms go to %s", e.plan.Mail)}
		}
	}
	return []Finding{missing(check, e.plan.Mail+" is not subscribed to the alarms: the mail was not answered for three days, or the address unsubscribed", again)}
}

// certificate checks the certificate of the stage's domain.
func (e *exam) certificate(ctx context.Context) []Finding {
	const check = "certificate"
	arn, domain := e.plan.Certificate, e.plan.Domain
	if domain == "" {
		return nil
	}
	if f := e.unreached(check); f != nil {
		return f
	}
	another := "aws acm request-certificate --domain-name " + domain + " --validation-method DNS --region " + e.AWS.Region + ", then set " + e.entry("certificate") + " to its ARN"
	if parts := strings.Split(arn, ":"); len(parts) > 3 && parts[3] != e.AWS.Region {
		return []Finding{wrong(check, "it is of the region "+parts[3]+", and the stage of "+e.AWS.Region, another)}
	}
	var found struct {
		Certificate struct {
			Status, FailureReason   string
			SubjectAlternativeNames []string
			DomainValidationOptions []struct {
				ValidationStatus string
				ResourceRecord   *struct{ Name, Type, Value string }
			}
		}
	}
	err := e.json(ctx, "acm", "CertificateManager.DescribeCertificate", map[string]string{"CertificateArn": arn}, &found)
	c := found.Certificate
	switch {
	case code(err) == "ResourceNotFoundException":
		return []Finding{missing(check, "there is no certificate "+arn, another)}
	case err != nil:
		return []Finding{e.unmade(check, "acm:DescribeCertificate", err)}
	case !slices.ContainsFunc(c.SubjectAlternativeNames, func(name string) bool { return covers(name, domain) }):
		return []Finding{wrong(check, "it is for "+strings.Join(c.SubjectAlternativeNames, ", ")+" and not for "+domain, another)}
	case c.Status == "ISSUED":
		return []Finding{ok(check, "issued for %s", domain)}
	case c.Status == "PENDING_VALIDATION":
		for _, o := range c.DomainValidationOptions {
			if o.ResourceRecord != nil && o.ValidationStatus != "SUCCESS" {
				r := o.ResourceRecord
				return []Finding{missing(check, "AWS has not seen the proof that the domain is yours", "add the DNS record "+r.Name+" "+r.Type+" "+r.Value)}
			}
		}
		return []Finding{missing(check, "AWS has not seen the proof that the domain is yours", "aws acm describe-certificate --certificate-arn "+arn+" --region "+e.AWS.Region+", and add its DNS record")}
	}
	return []Finding{wrong(check, "it is "+strings.TrimSuffix(c.Status+" "+c.FailureReason, " "), another)}
}

// covers reports whether the certificate's name, which may begin with "*.", matches a host.
func covers(name, host string) bool {
	if parent, wild := strings.CutPrefix(name, "*."); wild {
		_, rest, _ := strings.Cut(host, ".")
		return rest == parent
	}
	return name == host
}

// domain checks that the stage's domain resolves to its API.
func (e *exam) domain(ctx context.Context) []Finding {
	const check = "domain"
	if e.plan.Domain == "" {
		return nil
	}
	if f := e.undeployed(check); f != nil {
		return f
	}
	target := e.deployed.Outputs["DomainTarget"]
	if target == "" {
		return []Finding{missing(check, "the deployed stage has no domain", e.deploy())}
	}
	record := "add the DNS record " + e.plan.Domain + ". CNAME " + target + "."
	name, err := e.DNS.LookupCNAME(ctx, e.plan.Domain)
	if err == nil && strings.EqualFold(strings.TrimSuffix(name, "."), target) {
		return []Finding{ok(check, "%s is %s", e.plan.Domain, target)}
	}
	have, err := e.DNS.LookupHost(ctx, e.plan.Domain)
	if err != nil {
		return []Finding{missing(check, "the DNS does not have "+e.plan.Domain, record)}
	}
	// An alias record of Route 53 has no CNAME, but the same addresses.
	if want, err := e.DNS.LookupHost(ctx, target); err == nil && slices.ContainsFunc(have, func(a string) bool { return slices.Contains(want, a) }) {
		return []Finding{ok(check, "%s has the addresses of %s", e.plan.Domain, target)}
	}
	return []Finding{wrong(check, e.plan.Domain+" leads to "+strings.Join(have, ", "), "replace its records: "+record)}
}

// api checks that the API answers at its address.
func (e *exam) api(ctx context.Context) []Finding {
	const check = "api"
	if !e.planned() {
		return nil
	}
	if f := e.undeployed(check); f != nil {
		return f
	}
	address := e.deployed.Outputs["URL"]
	if address == "" {
		return []Finding{unknown(check, "not checked: the stack has no output URL", "do what the line stack says")}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/healthz", nil)
	if err != nil {
		return []Finding{unknown(check, "not checked: "+reason(err), e.deploy())}
	}
	answer, err := e.HTTP.Do(request)
	if err != nil {
		return []Finding{wrong(check, address+" does not answer: "+reason(err), "do what the lines before say, then repeat "+e.again())}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return []Finding{wrong(check, fmt.Sprintf("%s/healthz answers with the status %d", address, answer.StatusCode),
			"do what the lines before say; the cause is in the log: aws logs tail $("+e.logOf("tasks")+") --since 10m --region "+e.AWS.Region)}
	}
	return []Finding{ok(check, "%s", address)}
}

// logOf returns the command that prints the name of a function's log group.
func (e *exam) logOf(function string) string {
	return "aws lambda get-function-configuration --function-name sortie-" + e.Stage + "-" + function +
		" --query LoggingConfig.LogGroup --output text --region " + e.AWS.Region
}
