// Package protojson stands in for the protobuf module's.
package protojson

func Marshal(m any) ([]byte, error) { return nil, nil }
