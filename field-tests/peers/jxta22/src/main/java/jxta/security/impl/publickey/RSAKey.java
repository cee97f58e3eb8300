package jxta.security.impl.publickey;

/** Stand-in for the lost jxta.security: only its name is needed. */
public class RSAKey {
}
