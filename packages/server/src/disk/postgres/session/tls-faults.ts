import type { Fault } from './cannot-connect.ts'

/** As Node names what OpenSSL finds in a chain that ends nowhere known. */
const UNTRUSTED = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
])

const OTHERS = /^(?:ERR_(?:SSL|OSSL|TLS)_|CERT_|CRL_|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/

interface TlsError extends Error {
  readonly code?: string
  /** In OpenSSL's words, without its numbers. */
  readonly reason?: string
  readonly host?: string
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } }
}

/** Undefined where TLS is not what failed. */
export function tlsFaultOf(error: TlsError): Fault | undefined {
  const fault = ofCertificate(error) ?? ofHandshake(error)
  return fault === undefined ? undefined : { ...fault, weight: 'refused' }
}

type Words = Omit<Fault, 'weight'>

function ofCertificate({ code = '', message, host, cert }: TlsError): Words | undefined {
  if (UNTRUSTED.has(code)) {
    return {
      reason: 'the certificate of PostgreSQL is not signed by a CA that is trusted here',
      // Node goes on with a flag of its own, which is no help with a CA that this machine does not have.
      exactly: message.replace(/;.*/s, ''),
      remedy:
        'name the file of its CA with sslrootcert=FILE in the database URL, or in the variable NODE_EXTRA_CA_CERTS',
    }
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return {
      reason: 'the certificate of PostgreSQL, or of its CA, has expired',
      remedy: 'renew it there, and see that the clock of this machine is right',
    }
  }
  if (code === 'CERT_NOT_YET_VALID') {
    return {
      reason: 'the certificate of PostgreSQL, or of its CA, is not valid yet',
      remedy: 'see that the clock of this machine is right, or renew the certificate there',
    }
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = cert?.subjectaltname ?? cert?.subject?.CN ?? 'nobody'
    return {
      reason: 'the certificate of PostgreSQL is for another host',
      exactly: `it is for ${names}, and not for ${host}`,
      remedy: 'name a host of the certificate in the database URL, or have a certificate made for this one',
    }
  }
  return undefined
}

function ofHandshake({ code = '', message, reason = message }: TlsError): Words | undefined {
  // The driver has no codes for these two.
  if (message === 'The server does not support SSL connections') {
    return {
      reason: 'PostgreSQL offers no TLS, and it is asked for',
      remedy:
        'switch it on there (ssl = on), or, where the network can be trusted, say sslmode=disable in the database URL',
    }
  }
  if (OTHERS.test(code) || message === 'There was an error establishing an SSL connection') {
    return {
      reason: 'TLS with PostgreSQL failed',
      exactly: reason,
      remedy: 'look at sslrootcert, sslcert and sslkey in the database URL, and at the log of PostgreSQL',
    }
  }
  return undefined
}
