package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// identity is the caller of AWS.
type identity struct{ account, arn string }

var errNoRegion = errors.New("no region")

func (e *exam) identify(ctx context.Context) (identity, error) {
	if e.AWSErr != nil {
		return identity{}, fmt.Errorf("cannot load the configuration: %w", e.AWSErr)
	}
	if e.AWS.Region == "" {
		return identity{}, errNoRegion
	}
	found, err := sts.NewFromConfig(e.AWS).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return identity{}, err
	}
	return identity{aws.ToString(found.Account), aws.ToString(found.Arn)}, nil
}

// credentials checks that the credentials work and that their account is the stage's.
func (e *exam) credentials(context.Context) []Finding {
	const name = "credentials"
	account := e.Account
	if account == "" && e.Assembly != nil {
		account = e.Assembly.Account
	}
	switch {
	case errors.Is(e.callerErr, errNoRegion):
		return []Finding{missing(name, "no region", "set "+e.entry("region")+" in "+e.Settings+", or AWS_REGION")}
	case e.callerErr == nil && account != "" && account != e.caller.account:
		return []Finding{wrong(name, fmt.Sprintf("%s is in the account %s, and the stage in %s", e.caller.arn, e.caller.account, account),
			"export AWS_PROFILE=… with a profile of the account "+account)}
	case e.callerErr == nil:
		return []Finding{ok(name, "%s in %s", e.caller.arn, e.AWS.Region)}
	}
	return []Finding{e.anonymous(name)}
}

// anonymous returns the finding for credentials that do not work.
func (e *exam) anonymous(check string) Finding {
	const profile = "export AWS_PROFILE=… with a profile of the account"
	text := strings.Join(strings.Fields(e.callerErr.Error()), " ")
	switch refused := code(e.callerErr); {
	case e.AWSErr != nil:
		return wrong(check, text, "aws configure, or "+profile)
	case refused == "ExpiredToken", refused == "ExpiredTokenException", strings.Contains(text, "SSO session"), strings.Contains(text, "InvalidGrantException"):
		return wrong(check, "the session has expired", "aws sso login, or "+profile)
	case refused == "RequestTimeTooSkewed", refused == "SignatureDoesNotMatch" && (strings.Contains(text, "expired") || strings.Contains(text, "not yet current")):
		return wrong(check, "AWS refuses the time of this machine's signature", "set the clock of this machine")
	case slices.Contains([]string{"InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException", "AuthFailure"}, refused):
		return wrong(check, "AWS does not accept the access key ("+refused+")", "aws configure, with an access key of the account")
	case refused == "" && strings.Contains(text, "get credentials"):
		return missing(check, "no AWS credentials", "aws configure, or "+profile)
	}
	return e.unmade(check, "sts:GetCallerIdentity", e.callerErr)
}

// The SSM parameter with the version of the bootstrap stack, and the minimum version for the
// CDK's templates. They apply to an assembly that does not name its own.
const (
	bootstrapParameter = "/cdk-bootstrap/hnb659fds/version"
	bootstrapVersion   = 6
	bootstrapStack     = "CDKToolkit"
)

// bootstrap checks the bootstrap stack, which "cdk deploy" needs in the account and region.
func (e *exam) bootstrap(ctx context.Context) []Finding {
	const name = "bootstrap"
	if f := e.unreached(name); f != nil {
		return f
	}
	parameter, least := bootstrapParameter, bootstrapVersion
	if e.Assembly != nil && e.Assembly.BootstrapParameter != "" {
		parameter, least = e.Assembly.BootstrapParameter, e.Assembly.BootstrapVersion
	}
	again := "infra/.cdk/node_modules/.bin/cdk bootstrap aws://" + e.caller.account + "/" + e.AWS.Region
	var found struct{ Parameter struct{ Value string } }
	err := e.json(ctx, "ssm", "AmazonSSM.GetParameter", map[string]string{"Name": parameter}, &found)
	version, malformed := strconv.Atoi(found.Parameter.Value)
	switch {
	case code(err) == "ParameterNotFound":
		return []Finding{e.unbootstrapped(ctx, again)}
	case err != nil:
		return []Finding{e.unmade(name, "ssm:GetParameter", err)}
	case malformed != nil || version < least:
		return []Finding{wrong(name, fmt.Sprintf("the bootstrap stack has version %s, want at least %d", found.Parameter.Value, least), again)}
	}
	return []Finding{ok(name, "version %s in %s", found.Parameter.Value, e.AWS.Region)}
}

// unbootstrapped returns the finding for a failed or absent bootstrap stack.
func (e *exam) unbootstrapped(ctx context.Context, again string) Finding {
	stack := bootstrapStack
	found, err := cloudformation.NewFromConfig(e.AWS).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err == nil && len(found.Stacks) > 0 {
		return wrong("bootstrap", "the stack CDKToolkit is "+string(found.Stacks[0].StackStatus),
			"aws cloudformation delete-stack --stack-name CDKToolkit --region "+e.AWS.Region+" && "+again)
	}
	return missing("bootstrap", "the CDK's bootstrap stack is not in "+e.caller.account+", "+e.AWS.Region, again)
}

// concurrencyQuota is the code of Lambda's quota "Concurrent executions". usualConcurrency is
// its default in an older account (Lambda Developer Guide, "Lambda quotas").
const (
	concurrencyQuota = "L-B99A9384"
	usualConcurrency = 1000
)

// concurrency compares Lambda's quota with the need of the settings.
func (e *exam) concurrency(ctx context.Context) []Finding {
	const name = "concurrency"
	if !e.planned() {
		return nil
	}
	if f := e.unreached(name); f != nil {
		return f
	}
	found, err := lambda.NewFromConfig(e.AWS).GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil {
		return []Finding{e.unmade(name, "lambda:GetAccountSettings", err)}
	}
	need, have, elsewhere := e.plan.Concurrency(), 0, 0
	if limit := found.AccountLimit; limit != nil {
		have = int(limit.ConcurrentExecutions)
		if limit.UnreservedConcurrentExecutions != nil {
			elsewhere = max(have-int(*limit.UnreservedConcurrentExecutions)-e.present.Reserved, 0)
		}
	}
	detail := fmt.Sprintf("%d concurrent executions, and the settings need %d", have, need)
	if elsewhere > 0 {
		detail += fmt.Sprintf(" beside %d that other functions reserve", elsewhere)
	}
	if have-elsewhere >= need {
		return []Finding{ok(name, "%s", detail)}
	}
	return []Finding{wrong(name, detail, e.raise(ctx, "lambda", concurrencyQuota, max(need+elsewhere, usualConcurrency)))}
}

// requestsQuota is the code of API Gateway's quota "Throttle rate". leastRequests is its lowest
// default, in small regions (API Gateway Developer Guide, "Quotas"). No other quota can be
// exceeded by settings: the rest limit the rate of run starts, which is not a setting.
const (
	requestsQuota = "L-8A5B8E43"
	leastRequests = 2500
)

// requests compares API Gateway's quota with the highest rate of the settings, if that exceeds
// the lowest default.
func (e *exam) requests(ctx context.Context) []Finding {
	const name = "requests"
	if e.plan.Rate <= leastRequests {
		return nil
	}
	if f := e.unreached(name); f != nil {
		return f
	}
	var found struct{ Quota struct{ Value float64 } }
	err := e.json(ctx, "servicequotas", "ServiceQuotasV20190624.GetServiceQuota", map[string]string{"ServiceCode": "apigateway", "QuotaCode": requestsQuota}, &found)
	if err != nil {
		return []Finding{e.unmade(name, "servicequotas:GetServiceQuota", err)}
	}
	detail := fmt.Sprintf("%.0f requests a second for the account, and the settings have up to %d for a method", found.Quota.Value, e.plan.Rate)
	if int(found.Quota.Value) >= e.plan.Rate {
		return []Finding{ok(name, "%s", detail)}
	}
	return []Finding{wrong(name, detail, e.raise(ctx, "apigateway", requestsQuota, e.plan.Rate)+", or lower "+e.entry("workerRate"))}
}

// raise returns the step that raises a quota. It does not repeat a pending request.
func (e *exam) raise(ctx context.Context, service, quota string, to int) string {
	var history struct {
		RequestedQuotas []struct {
			Status       string
			DesiredValue float64
		}
	}
	// If this call fails, the step repeats the request, which AWS then refuses with the reason.
	_ = e.json(ctx, "servicequotas", "ServiceQuotasV20190624.ListRequestedServiceQuotaChangeHistoryByQuota",
		map[string]string{"ServiceCode": service, "QuotaCode": quota}, &history)
	for _, r := range history.RequestedQuotas {
		if slices.Contains([]string{"PENDING", "CASE_OPENED"}, r.Status) {
			return fmt.Sprintf("wait for AWS's answer to the request for %.0f, which comes by mail", r.DesiredValue)
		}
	}
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code %s --quota-code %s --desired-value %d --region %s", service, quota, to, e.AWS.Region)
}
