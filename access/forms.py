"""What people type to sign in."""

from django import forms


class SignIn(forms.Form):
    email = forms.EmailField(max_length=254)
    password = forms.CharField(max_length=1000, strip=False)

    def clean_email(self) -> str:
        return self.cleaned_data["email"].lower()


class Address(forms.Form):
    email = forms.EmailField(max_length=254)

    def clean_email(self) -> str:
        return self.cleaned_data["email"].lower()
