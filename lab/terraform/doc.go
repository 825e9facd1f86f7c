// Package terraform tests the Terraform module in deploy/terraform without Terraform and
// without AWS.
package terraform
