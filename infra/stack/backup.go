package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// backupDays is the retention of a daily copy of the table in days.
const backupDays = 35

// addBackup adds a daily copy of the table to a vault, if the setting backup is on. Unlike
// point-in-time recovery, the copy survives the deletion of the table.
func (b *builder) addBackup() {
	if !b.settings.Backup {
		return
	}
	vault := b.resource("BackupVault", "Backup::BackupVault", map[string]any{
		"BackupVaultName": b.name("backups"), "BackupVaultTags": map[string]any{"project": "sortie", "stage": b.settings.Stage},
	})
	vault.ApplyRemovalPolicy(b.removal(), nil)
	plan := b.resource("BackupPlan", "Backup::BackupPlan", map[string]any{"BackupPlan": map[string]any{
		"BackupPlanName": b.name("daily"),
		"BackupPlanRule": []any{map[string]any{
			"RuleName": "daily", "TargetBackupVault": *vault.Ref(), "ScheduleExpression": "cron(0 3 * * ? *)",
			"Lifecycle": map[string]any{"DeleteAfterDays": backupDays},
		}},
	}})
	role := awsiam.NewRole(b.stack, jsii.String("RoleBackup"), &awsiam.RoleProps{
		AssumedBy:       awsiam.NewServicePrincipal(jsii.String("backup.amazonaws.com"), nil),
		ManagedPolicies: &[]awsiam.IManagedPolicy{awsiam.ManagedPolicy_FromAwsManagedPolicyName(jsii.String("service-role/AWSBackupServiceRolePolicyForBackup"))},
	})
	b.resource("BackupSelection", "Backup::BackupSelection", map[string]any{
		"BackupPlanId":    *plan.Ref(),
		"BackupSelection": map[string]any{"SelectionName": "table", "IamRoleArn": *role.RoleArn(), "Resources": []any{b.table.arn}},
	})
}

// addBudget adds two mails: one when the cost of a month exceeds the budget, and one when the
// forecast does. AWS selects the costs by the tag "stage" after it is activated as a cost
// allocation tag.
func (b *builder) addBudget() {
	if b.settings.Budget == 0 {
		return
	}
	var mails []any
	for _, of := range []string{"ACTUAL", "FORECASTED"} {
		mails = append(mails, map[string]any{
			"Notification": map[string]any{"NotificationType": of, "ComparisonOperator": "GREATER_THAN", "Threshold": 100, "ThresholdType": "PERCENTAGE"},
			"Subscribers":  []any{map[string]any{"SubscriptionType": "EMAIL", "Address": b.settings.AlarmEmail}},
		})
	}
	b.resource("Budget", "Budgets::Budget", map[string]any{
		"Budget": map[string]any{
			"BudgetName": b.name("month"), "BudgetType": "COST", "TimeUnit": "MONTHLY",
			"BudgetLimit": map[string]any{"Amount": b.settings.Budget, "Unit": "USD"},
			"CostFilters": map[string]any{"TagKeyValue": []any{"user:stage$" + b.settings.Stage}},
		},
		"NotificationsWithSubscribers": mails,
	})
}
