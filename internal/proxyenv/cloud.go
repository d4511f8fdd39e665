package proxyenv

import "github.com/proxyward/proxyward/api/v1alpha1"

// endpoint is an address or a name that a cloud answers on to its own machines only.
type endpoint struct{ value, reason string }

// cloudMetadata returns the endpoints of one cloud that nothing but the machine itself can reach,
// so that a proxy must not be asked for them. Each is from that cloud's own documentation.
func cloudMetadata(cloud v1alpha1.Cloud) []endpoint {
	const linkLocal = "169.254.169.254"
	switch cloud {
	case v1alpha1.CloudAWS:
		return []endpoint{
			{linkLocal, "EC2 instance metadata"},
			{"fd00:ec2::254", "EC2 instance metadata over IPv6"},
			{"169.254.170.23", "EKS Pod Identity agent"},
			{"fd00:ec2::23", "EKS Pod Identity agent over IPv6"},
		}
	case v1alpha1.CloudAzure:
		return []endpoint{
			{linkLocal, "Azure instance metadata"},
			{"168.63.129.16", "Azure platform agent endpoint"},
		}
	case v1alpha1.CloudGCP:
		return []endpoint{
			{linkLocal, "GCE metadata server"},
			{"fd20:ce::254", "GCE metadata server over IPv6"},
			{"metadata", "GCE metadata server by its short name"},
			{"metadata.google.internal", "GCE metadata server by its name"},
		}
	case v1alpha1.CloudOpenStack:
		return []endpoint{
			{linkLocal, "OpenStack metadata service"},
			{"fe80::a9fe:a9fe", "OpenStack metadata service over IPv6"},
		}
	default:
		return nil
	}
}
